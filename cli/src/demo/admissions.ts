import type { Slice } from './messages.js'

/** The demo's own log: when each client was admitted. */
export class Admissions {
  readonly #windowMs: number
  readonly #byClient = new Map<number, number[]>()

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  add({ clients, atMs }: Pick<Slice, 'clients' | 'atMs'>): void {
    for (const [i, client] of clients.entries()) {
      const moments = this.#byClient.get(client)
      if (moments) moments.push(atMs[i]!)
      else this.#byClient.set(client, [atMs[i]!])
    }
  }

  /** The most that a client was admitted in any window: (t - windowMs, t] for every t. */
  peakOf(client: number): number {
    const moments = this.#sorted(client)
    let peak = 0
    let oldest = 0
    for (const [i, atMs] of moments.entries()) {
      while (moments[oldest]! <= atMs - this.#windowMs) oldest++
      peak = Math.max(peak, i + 1 - oldest)
    }
    return peak
  }

  /** How often a client had been admitted in the window that ends at each of these moments, which rise. */
  usedAt(client: number, momentsMs: readonly number[]): number[] {
    const moments = this.#sorted(client)
    let oldest = 0
    let next = 0
    return momentsMs.map((atMs) => {
      while (next < moments.length && moments[next]! <= atMs) next++
      while (oldest < next && moments[oldest]! <= atMs - this.#windowMs) oldest++
      return next - oldest
    })
  }

  #sorted(client: number): number[] {
    return (this.#byClient.get(client) ?? []).sort((a, b) => a - b)
  }
}
