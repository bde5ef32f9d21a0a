/** The upper bounds of the buckets, in milliseconds. */
export const BOUNDS_MS = [
  0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
] as const

/** How long calls took, in buckets of fixed bounds. */
export interface Latency {
  /**
   * By the upper bound of a bucket in milliseconds, from the smallest to the largest: how many calls took as long or
   * less. Those of all: `count`. The bounds are `'0.25'`, `'0.5'`, `'1.0'`, `'2.5'`, `'5.0'` and so on to `'10000.0'`, as
   * OpenMetrics writes numbers.
   */
  readonly atMostMs: Readonly<Record<string, number>>
  /** How many calls were answered. */
  readonly count: number
  /** How long all of them took together, in milliseconds. */
  readonly sumMs: number
}

/** The key of a bucket. A key such as `'1'` would come before `'0.25'` in an object. */
export const keyOfBound = (ms: number): string => (Number.isInteger(ms) ? ms.toFixed(1) : String(ms))

/** Counts how long calls take. */
export class LatencyCounts {
  readonly #buckets: number[] = BOUNDS_MS.map(() => 0)
  #count = 0
  #sumMs = 0

  record(ms: number): void {
    this.#count++
    this.#sumMs += ms
    const bucket = BOUNDS_MS.findIndex((bound) => ms <= bound)
    if (bucket >= 0) this.#buckets[bucket]!++
  }

  present(): Latency {
    let sum = 0
    const atMostMs: Record<string, number> = {}
    for (const [i, bound] of BOUNDS_MS.entries()) {
      sum += this.#buckets[i]!
      atMostMs[keyOfBound(bound)] = sum
    }
    return { atMostMs, count: this.#count, sumMs: this.#sumMs }
  }
}
