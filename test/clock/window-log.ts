/**
 * An exact log of what takes effect in any order: two clocks that differ by part of a granule, or one that steps back,
 * make later decisions count at earlier moments. So every window is looked at, not only the one that ends now.
 */
export class WindowLog {
  /** By moment, the earliest first. */
  readonly #entries: { at: number; cost: number }[] = []

  add(at: number, cost: number): void {
    let place = this.#entries.length
    while (place > 0 && this.#entries[place - 1]!.at > at) place--
    this.#entries.splice(place, 0, { at, cost })
  }

  forget(): void {
    this.#entries.length = 0
  }

  /** Of the latest moment, or -Infinity. */
  get newest(): number {
    return this.#entries.at(-1)?.at ?? Number.NEGATIVE_INFINITY
  }

  /** Units in (at - windowMs, at]. */
  used(at: number, windowMs: number): number {
    let used = 0
    for (let i = this.#entries.length - 1; i >= 0 && this.#entries[i]!.at > at - windowMs; i--) {
      if (this.#entries[i]!.at <= at) used += this.#entries[i]!.cost
    }
    return used
  }

  /** The most units in any window that holds `at`: a fullest one ends with one of the entries. */
  mostAround(at: number, windowMs: number): number {
    let most = 0
    for (let i = this.#entries.length - 1; i >= 0 && this.#entries[i]!.at >= at; i--) {
      const end = this.#entries[i]!.at
      if (end < at + windowMs) most = Math.max(most, this.used(end, windowMs))
    }
    return most
  }
}
