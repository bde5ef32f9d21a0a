/** How long single decisions took, each timed by itself: the two readings of the clock, some 80 ns, are in it. */
export class Latencies {
  readonly #us: Float64Array
  #count = 0

  /** Keeps the first `most` of them. */
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

  /** In microseconds: `share` of them took at most so long. */
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
