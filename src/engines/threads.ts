import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { ownFile } from '../core/own-file.js'
import { noThreads } from './pool-errors.js'
import type { RingTask } from './worker.js'

/** As piscina takes them, and gives them to `new Worker`. */
export interface ThreadOptions {
  readonly minThreads: number
  readonly maxThreads: number
  readonly resourceLimits: object | undefined
}

/** Of piscina, what is used here. Its own types do not hold where optional properties are exact. */
interface Piscina {
  readonly queueSize: number
  readonly threads: readonly Worker[]
  run(task: unknown, options?: { signal: AbortSignal }): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
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
 * The threads of a pool. Piscina starts them, as many as there are rings with work, ends those that are idle beyond
 * `minThreads`, and replaces those that die.
 */
export class Threads {
  readonly #piscina: Piscina
  /** What is under way, with what gives it up: true if no thread has come for it, and none will. */
  readonly #runs = new Map<AbortController, () => boolean>()
  /** Ended by piscina, which does not wait for their exit. */
  readonly #ending = new Set<Promise<void>>()
  #failures = 0
  #lastError: unknown
  #isClosed = false

  /** @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor({ minThreads, maxThreads, resourceLimits }: ThreadOptions) {
    const file = ownFile('dist/engines/worker.js')
    const require = createRequire(file) // not of this module, which has no URL in a CommonJS bundle
    try {
      // Who decides in the calling thread alone should not pay for loading it.
      const { Piscina } = require('piscina') as { Piscina: new (options: object) => Piscina }
      this.#piscina = new Piscina({
        filename: fileURLToPath(file),
        name: 'serve',
        minThreads,
        maxThreads,
        ...(resourceLimits && { resourceLimits }),
        idleTimeout: IDLE_THREAD_MS,
        recordTiming: false,
      })
    } catch (error) {
      throw noThreads(error)
    }
    // Of a thread that has no task; `workerDestroy` tells of its end.
    this.#piscina.on('error', (error) => {
      this.#lastError = error
    })
    this.#piscina.on('workerDestroy', ({ id }) => {
      const thread = this.#piscina.threads.find(({ threadId }) => threadId === id && id >= 0)
      if (thread !== undefined) this.#awaitExit(thread)
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

  /** A thread that dies while it starts leaves the task behind that it was to have; piscina starts another one only when asked. */
  #replace(): void {
    if (this.#isClosed || this.#piscina.queueSize === 0) return
    if (++this.#failures < MOST_FAILURES) {
      this.#piscina.run(undefined).then(
        () => this.succeeded(),
        (error: unknown) => {
          this.#lastError = error // it has died, too: see `workerDestroy`
        },
      )
      return
    }
    this.#failures-- // the next one that fails is enough
    const error = noThreads(this.#lastError ?? new Error('threads end while they start'))
    for (const [controller, giveUp] of this.#runs) if (giveUp()) controller.abort(error)
  }
}
