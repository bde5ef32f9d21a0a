import { getHeapStatistics } from 'node:v8'
import { attachLimiter, type Limiter } from 'millrace'
import { type Counts, Load } from './load.js'
import { Logs, type SharedLogs } from './logs.js'
import type { Traffic } from './traffic.js'

/** What a thread needs to put its share of the load on every limiter: structured-cloneable. */
export interface SharedSoak {
  readonly traffics: readonly Traffic[]
  readonly limiters: readonly ReturnType<Limiter['share']>[]
  readonly logs: readonly SharedLogs[]
  readonly seed: number
}

/** What a thread reports when it rests: its counts of each limiter, and the least heap it had since the last rest. */
export interface Report {
  readonly counts: readonly Counts[]
  readonly heapBytes: number
}

/** About a tenth of a millisecond: a server's event loop is not kept waiting. */
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

  /** A slice of decisions on the next limiter in turn; `ends` are the keys of each that may not come in yet. */
  slice(ends: readonly number[]): void {
    const turn = this.#slices++ % this.#loads.length
    this.#loads[turn]!.slice(DECISIONS_A_SLICE, ends[turn]!)
    if (this.#slices % SLICES_A_HEAP_READING === 0) this.#readHeap()
  }

  /** What this thread has done so far, all of it in the statistics too. */
  rest(): Report {
    this.#readHeap()
    for (const limiter of this.limiters) limiter.stats()
    return this.#report()
  }

  /** The same for the last time: closing flushes what `stats` did before. */
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
