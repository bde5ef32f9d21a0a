/** Latencies of single decisions. Each includes two readings of the clock, about 80 ns. */
export class Latencies {
  readonly #us: Float64Array
  #count = 0

  /** Keeps the first `most` latencies. */
  constructor(most: number) {
    this.#us = new Float64Array(most)
  }

  time<T>(act: () => T): T {
    const startMs = performance.now()
    const result = act()
    const endMs = performance.now()
    if (this.#count < this.#us.length) this.#us[this.#count++] = (endMs - startMs) * 1_000
    return result
  }

  /** The percentile `share` (0 to 1) in microseconds. */
  percentileUs(share: number): number {
    const sorted = this.#us.subarray(0, this.#count).toSorted()
    return sorted[Math.min(this.#count - 1, Math.floor(share * this.#count))] ?? Number.NaN
  }
}

/** `p50 0.31 us, p99 1.20 us`. */
export function percentiles(latencies: Latencies): string {
  return [0.5, 0.99]
    .map((share) => `p${100 * share} ${latencies.percentileUs(share).toFixed(2)} us`)
    .join(', ')
}
