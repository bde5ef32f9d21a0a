import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { ownFile } from '../core/own-file.js'
import { noThreadsError } from './pool-errors.js'
import type { RingTask } from './worker.js'

/** As piscina takes them, and gives them to `new Worker`. */
export interface ThreadOptions {
  readonly minThreads: number
  readonly maxThreads: number
  readonly resourceLimits: object | undefined
}

/** Of piscina, what is used here. Its own types do not hold where optional properties are exact. */
interface Piscina {
  readonly threads: readonly Worker[]
  /** As it goes by them now: threads that may be started, and threads that are not ended however idle they are. */
  readonly options: { maxThreads: number; minThreads: number }
  run(task: unknown, options?: { signal: AbortSignal }): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
  /** A thread has loaded what it runs. */
  on(event: 'workerCreate', listener: () => void): void
  /** Before the thread is taken from `threads`; it may have exited, and has the id -1 then. */
  on(event: 'workerDestroy', listener: (thread: { readonly id: number }) => void): void
  destroy(): Promise<void>
}

/**
 * Threads that end one after another while they start: starting more is no use. What kills them is, say, a limit of memory
 * that no thread can live in.
 */
const MOST_FAILURES = 10
/** A thread beyond `minThreads` ends when its ring has had no work for so long. */
const IDLE_THREAD_MS = 10_000

/**
 * The threads of a pool, as many as there are rings with work. Piscina has them, gives them their tasks, and ends those that are
 * idle beyond `minThreads`. It starts one only in `#startOne`, which catches what that throws. Left to itself, it would start one in an
 * event of a thread that ended: where none can be started, that error ends the process.
 */
export class Threads {
  readonly #piscina: Piscina
  readonly #minThreads: number
  readonly #maxThreads: number
  readonly #tasks = new Tasks()
  /** What is under way, with what gives it up: true if no thread has come for it, and none will. */
  readonly #runs = new Map<AbortController, () => boolean>()
  /** Ended by piscina, which does not wait for their exit. */
  readonly #ending = new Set<Promise<void>>()
  #failures = 0
  #lastError: unknown
  #isClosed = false

  /** @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor({ minThreads, maxThreads, resourceLimits }: ThreadOptions) {
    this.#minThreads = minThreads
    this.#maxThreads = maxThreads
    const file = ownFile('dist/engines/worker.js')
    const require = createRequire(file) // not of this module, which has no URL in a CommonJS bundle
    try {
      // Who decides in the calling thread alone should not pay for loading it.
      const { Piscina } = require('piscina') as { Piscina: new (options: object) => Piscina }
      this.#piscina = new Piscina({
        filename: fileURLToPath(file),
        name: 'serve',
        minThreads: 0,
        taskQueue: this.#tasks,
        loadBalancer: this.#tasks.workerFor,
        ...(resourceLimits && { resourceLimits }),
        idleTimeout: IDLE_THREAD_MS,
        recordTiming: false,
      })
    } catch (error) {
      throw noThreadsError(error)
    }
    this.#piscina.options.maxThreads = 0
    try {
      this.#startMissing()
    } catch (error) {
      void this.close() // those that did start
      throw noThreadsError(error)
    }
    this.#piscina.on('workerCreate', () => this.succeeded())
    // Of a thread that has no task; `workerDestroy` tells of its end.
    this.#piscina.on('error', (error) => {
      this.#lastError = error
    })
    this.#piscina.on('workerDestroy', ({ id }) => {
      const { threads, options } = this.#piscina
      const thread = threads.find(({ threadId }) => threadId === id && id >= 0)
      if (thread !== undefined) this.#awaitExit(thread)
      options.minThreads = Math.min(this.#minThreads, threads.length - 1)
      setImmediate(() => this.#replace())
    })
  }

  /**
   * Runs a ring's answerer. Resolves when it has ended by itself; rejects when its thread has, with
   * `ERR_MILLRACE_NO_THREADS` where none could be started for it and `giveUp` said that it has not begun.
   */
  async run(task: RingTask, giveUp: () => boolean): Promise<void> {
    const controller = new AbortController()
    const { signal } = controller
    this.#runs.set(controller, giveUp)
    try {
      this.#startMissing()
      await this.#piscina.run(task, { signal })
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      this.#runs.delete(controller)
    }
    this.succeeded()
  }

  /** Some thread has done something: they can be started. */
  succeeded(): void {
    this.#failures = 0
  }

  /** Ends all threads. Resolves when they have exited. */
  async close(): Promise<void> {
    this.#isClosed = true
    // A thread that breaks meanwhile is not waited for by piscina; and at an exit that comes after `destroy`, it starts one anew.
    do {
      while (this.#ending.size > 0) await Promise.all(this.#ending)
      await this.#piscina.destroy()
    } while (this.#ending.size > 0 || this.#piscina.threads.length > 0)
  }

  #awaitExit(thread: Worker): void {
    const exit = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    this.#ending.add(exit)
    void exit.then(() => this.#ending.delete(exit))
  }

  /** Starts a thread for each ring with work, but at most `maxThreads`. */
  #startMissing(): void {
    while (this.#isMissing()) this.#startOne()
  }

  #isMissing(): boolean {
    const wanted = Math.min(this.#maxThreads, Math.max(this.#minThreads, this.#runs.size))
    return this.#piscina.threads.length < wanted
  }

  #startOne(): void {
    const { options } = this.#piscina
    options.maxThreads = this.#maxThreads
    this.#tasks.isStarting = true
    try {
      void this.#piscina.run(undefined) // never settles: `Tasks` drops it
    } finally {
      this.#tasks.isStarting = false
      options.maxThreads = 0
      options.minThreads = Math.min(this.#minThreads, this.#piscina.threads.length)
    }
  }

  /** A thread has ended. If it died while it started, the task that it was to have waits for another one. */
  #replace(): void {
    if (this.#isClosed || !this.#isMissing()) return
    if (++this.#failures < MOST_FAILURES) {
      try {
        this.#startMissing()
        return
      } catch (error) {
        this.#lastError = error
      }
    }
    this.#failures = MOST_FAILURES - 1 // the next one that fails is enough
    const error = noThreadsError(this.#lastError ?? new Error('threads end while they start'))
    for (const [controller, giveUp] of this.#runs) if (giveUp()) controller.abort(error)
  }
}

/**
 * Piscina's queue of tasks that wait for a thread. Piscina starts a thread only for a task that no thread is free for. So the task that
 * starts a thread is kept from those that are free, and from the queue: left there, its promise would be rejected with nobody to
 * catch it.
 */
class Tasks {
  /** The task that comes now is only to start a thread. */
  isStarting = false
  readonly #waiting: object[] = []

  readonly workerFor = (_task: object, workers: readonly { readonly currentUsage: number }[]) =>
    (this.isStarting ? undefined : workers.find((worker) => worker.currentUsage === 0)) ?? null

  get size(): number {
    return this.#waiting.length
  }

  push(task: object): void {
    if (!this.isStarting) this.#waiting.push(task)
  }

  shift(): object | null {
    return this.#waiting.shift() ?? null
  }

  remove(task: object): void {
    const place = this.#waiting.indexOf(task)
    if (place >= 0) this.#waiting.splice(place, 1)
  }
}
