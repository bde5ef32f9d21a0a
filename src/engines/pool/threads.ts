import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { ownFile } from '../../core/own-file.js'
import { setImmediate } from '../../core/real-timers.js'
import { noThreadsError } from './pool-errors.js'
import type { RingTask } from './worker.js'

/** The options for piscina; `resourceLimits` goes to `new Worker`. */
export interface ThreadOptions {
  readonly minThreads: number
  readonly maxThreads: number
  readonly resourceLimits: object | undefined
}

/** The used part of piscina. Its own types don't compile with `exactOptionalPropertyTypes`. */
interface Piscina {
  readonly threads: readonly Worker[]
  /**
   * Piscina reads both whenever it needs them: how many threads it may start, and how many idle threads it
   * keeps.
   */
  readonly options: { maxThreads: number; minThreads: number }
  run(task: unknown, options?: { signal: AbortSignal }): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
  /** A thread has started, and loaded its module. */
  on(event: 'workerCreate', listener: () => void): void
  /** A thread ends; it is still in `threads`. The id of a thread that has exited is -1. */
  on(event: 'workerDestroy', listener: (thread: { readonly id: number }) => void): void
  destroy(): Promise<void>
}

/**
 * After this many threads in a row died at start-up (of a memory limit that is too small, say), pending tasks
 * are rejected.
 */
const MAX_FAILURES = 10
/** A thread beyond `minThreads` ends after so long without work. */
const IDLE_THREAD_MS = 10_000

/**
 * The threads of a pool: one for each ring with work. Piscina runs the tasks on them, and ends idle ones
 * beyond `minThreads`. It starts threads only in `#startOne`, where the caller catches errors. By itself, it
 * would also start one in the event handler of a thread that ended. If no thread can be started, that error
 * would end the process.
 */
export class Threads {
  readonly #piscina: Piscina
  readonly #minThreads: number
  readonly #maxThreads: number
  readonly #tasks = new Tasks()
  /** The running tasks, with the functions that cancel their starts. */
  readonly #runs = new Map<AbortController, () => boolean>()
  /** The exits of threads that piscina has ended without waiting for them. */
  readonly #ending = new Set<Promise<void>>()
  #failures = 0
  #lastError: unknown
  #isClosed = false

  /** @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor({ minThreads, maxThreads, resourceLimits }: ThreadOptions) {
    this.#minThreads = minThreads
    this.#maxThreads = maxThreads
    const file = ownFile('engines/pool/worker.js')
    const require = createRequire(file) // not of this module, which has no URL in a CommonJS bundle
    try {
      // Loaded here, so that programs without a pool don't load it.
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
      void this.close() // ends the threads that have started
      throw noThreadsError(error)
    }
    this.#piscina.on('workerCreate', () => this.succeeded())
    // An error of a thread without a task. `workerDestroy` follows.
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
   * Runs the server of a ring. Resolves when the server has ended; rejects when its thread died. If no thread
   * can be started for it, and `cancelStart` returns true, rejects with `ERR_MILLRACE_NO_THREADS`.
   */
  async run(task: RingTask, cancelStart: () => boolean): Promise<void> {
    const controller = new AbortController()
    const { signal } = controller
    this.#runs.set(controller, cancelStart)
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

  /** A thread has started or worked: ends the row of failures. */
  succeeded(): void {
    this.#failures = 0
  }

  /** Ends all threads. Resolves when they have exited. */
  async close(): Promise<void> {
    this.#isClosed = true
    // `destroy` does not wait for a thread that fails meanwhile. And piscina replaces a thread that exits
    // after `destroy`.
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
    const needed = Math.min(this.#maxThreads, Math.max(this.#minThreads, this.#runs.size))
    return this.#piscina.threads.length < needed
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

  /** Replaces a thread that ended. If it died at start-up, its task waits for another one. */
  #replace(): void {
    if (this.#isClosed || !this.#isMissing()) return
    if (++this.#failures < MAX_FAILURES) {
      try {
        this.#startMissing()
        return
      } catch (error) {
        this.#lastError = error
      }
    }
    this.#failures = MAX_FAILURES - 1 // one more failure is enough
    const error = noThreadsError(this.#lastError ?? new Error('threads end at start-up'))
    for (const [controller, cancelStart] of this.#runs) if (cancelStart()) controller.abort(error)
  }
}

/**
 * Piscina's task queue and load balancer. Piscina starts a thread only for a task that no idle thread can
 * take. So the task that starts a thread is offered to no idle thread. It does not enter the queue either:
 * piscina would reject its promise later, and nothing would catch that.
 */
class Tasks {
  /** Whether the next task only starts a thread. */
  isStarting = false
  readonly #queue: object[] = []

  readonly workerFor = (_task: object, workers: readonly { readonly currentUsage: number }[]) =>
    (this.isStarting ? undefined : workers.find((worker) => worker.currentUsage === 0)) ?? null

  get size(): number {
    return this.#queue.length
  }

  push(task: object): void {
    if (!this.isStarting) this.#queue.push(task)
  }

  shift(): object | null {
    return this.#queue.shift() ?? null
  }

  remove(task: object): void {
    const index = this.#queue.indexOf(task)
    if (index >= 0) this.#queue.splice(index, 1)
  }
}
