import type { Slice } from './messages.js'

/** The demo's log of the times at which each client was admitted. */
export class Admissions {
  readonly #windowMs: number
  readonly #byClient = new Map<number, number[]>()

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  add({ clients, atMs }: Pick<Slice, 'clients' | 'atMs'>): void {
    for (const [i, client] of clients.entries()) {
      const times = this.#byClient.get(client)
      if (times) times.push(atMs[i]!)
      else this.#byClient.set(client, [atMs[i]!])
    }
  }

  /** The most admissions of a client in any window (t - windowMs, t]. */
  peakOf(client: number): number {
    const times = this.#sorted(client)
    let peak = 0
    let oldest = 0
    for (const [i, atMs] of times.entries()) {
      while (times[oldest]! <= atMs - this.#windowMs) oldest++
      peak = Math.max(peak, i + 1 - oldest)
    }
    return peak
  }

  /** The client's admissions in the window that ends at each of the given times, which must rise. */
  usedAt(client: number, timesMs: readonly number[]): number[] {
    const times = this.#sorted(client)
    let oldest = 0
    let next = 0
    return timesMs.map((atMs) => {
      while (next < times.length && times[next]! <= atMs) next++
      while (oldest < next && times[oldest]! <= atMs - this.#windowMs) oldest++
      return next - oldest
    })
  }

  #sorted(client: number): number[] {
    return (this.#byClient.get(client) ?? []).sort((a, b) => a - b)
  }
}
