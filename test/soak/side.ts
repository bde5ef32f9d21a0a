import { getHeapStatistics } from 'node:v8'
import { attachLimiter, type Limiter } from 'millrace'
import { type Counts, Load } from './load.js'
import { Logs, type SharedLogs } from './logs.js'
import type { Traffic } from './traffic.js'

/** The data that a thread needs for its share of the load; structured-cloneable. */
export interface SharedSoak {
  readonly traffics: readonly Traffic[]
  readonly limiters: readonly ReturnType<Limiter['share']>[]
  readonly logs: readonly SharedLogs[]
  readonly seed: number
}

/** A thread's report at a rest: its counts per limiter, and its smallest heap since the last rest. */
export interface Report {
  readonly counts: readonly Counts[]
  readonly heapBytes: number
}

/** About a tenth of a millisecond of work, as a server should not block its event loop for longer. */
const DECISIONS_A_SLICE = 128
const SLICES_A_HEAP_READING = 64

/** One thread's side of the soak. */
export class Side {
  readonly limiters: readonly Limiter[]
  readonly #loads: readonly Load[]
  #heapBytes = Number.POSITIVE_INFINITY
  #slices = 0

  constructor({ traffics, limiters, logs, seed }: SharedSoak) {
    this.limiters = limiters.map((shared) => attachLimiter(shared))
    this.#loads = traffics.map(
      (traffic, i) =>
        new Load(
          this.limiters[i]!,
          traffic,
          new Logs(traffic, logs[i]!),
          Math.imul(seed + 1, 0x9e3779b9) + i,
        ),
    )
  }

  /**
   * Makes a slice of decisions on the next limiter. `ends` has the first key of each that must not be used
   * yet.
   */
  slice(ends: readonly number[]): void {
    const turn = this.#slices++ % this.#loads.length
    this.#loads[turn]!.slice(DECISIONS_A_SLICE, ends[turn]!)
    if (this.#slices % SLICES_A_HEAP_READING === 0) this.#readHeap()
  }

  /** This thread's counts so far, after it has flushed its statistics. */
  rest(): Report {
    this.#readHeap()
    for (const limiter of this.limiters) limiter.stats()
    return this.#report()
  }

  /** The last counts; close() flushes the statistics. */
  async close(): Promise<Report> {
    this.#readHeap()
    await Promise.all(this.limiters.map((limiter) => limiter.close()))
    return this.#report()
  }

  #report(): Report {
    const heapBytes = this.#heapBytes
    this.#heapBytes = Number.POSITIVE_INFINITY
    return { counts: this.#loads.map((load) => load.counts), heapBytes }
  }

  #readHeap(): void {
    this.#heapBytes = Math.min(this.#heapBytes, getHeapStatistics().used_heap_size)
  }
}
