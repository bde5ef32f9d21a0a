import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
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
  run(task: unknown): Promise<void>
  on(event: 'error' | 'workerDestroy', listener: (error: unknown) => void): void
  destroy(): Promise<void>
}

/**
 * Threads that end one after another before any of them has answered anything: starting more is no use. What kills them
 * is, say, a limit of memory that no thread can live in.
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
  readonly #onFailure: (error: unknown) => void
  #failures = 0
  #lastError: unknown
  #isClosed = false

  /**
   * `onFailure` is called when no thread can be kept alive.
   * @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED`
   */
  constructor({ resourceLimits, ...threads }: ThreadOptions, onFailure: (error: unknown) => void) {
    const file = ownFile('dist/engines/worker.js')
    const require = createRequire(file) // not of this module, which has no URL in a CommonJS bundle
    this.#onFailure = onFailure
    try {
      // Who decides in the calling thread alone should not pay for loading it.
      const { Piscina } = require('piscina') as { Piscina: new (options: object) => Piscina }
      this.#piscina = new Piscina({
        ...threads,
        ...(resourceLimits && { resourceLimits }),
        filename: fileURLToPath(file),
        idleTimeout: IDLE_THREAD_MS,
        recordTiming: false,
      })
    } catch (error) {
      throw noThreads(error)
    }
    // Of a thread that has no task: one that could not be started, or whose task is still to come.
    this.#piscina.on('error', (error) => {
      this.#lastError = error
    })
    this.#piscina.on('workerDestroy', () => setImmediate(() => this.#replace()))
  }

  /** Runs a ring's answerer. Resolves when it has ended by itself, rejects when its thread has. */
  run(task: RingTask): Promise<void> {
    return this.#piscina.run(task)
  }

  /** Some thread has done something: they work. */
  succeeded(): void {
    this.#failures = 0
  }

  /** Some thread has ended without having done anything. */
  failed(error: unknown): void {
    this.#lastError = error
    if (++this.#failures !== MOST_FAILURES) return
    this.#onFailure(noThreads(this.#lastError))
    // Its queue would wait for ever, and be waited for; and threads be started for it, one after another.
    void this.close()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#piscina.destroy()
  }

  /** A thread that dies while it starts leaves the task behind that it was to have; piscina starts another one only when asked. */
  #replace(): void {
    if (this.#isClosed || this.#piscina.queueSize === 0) return
    this.failed(this.#lastError ?? new Error('a thread has ended while it started'))
    if (!this.#isClosed) this.#piscina.run(undefined).catch(() => {})
  }
}
