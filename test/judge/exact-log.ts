/** To forget entries moves those that are kept: it waits until there are so many more of the former. */
const SPARE = 64

/**
 * An exact log: every unit with its moment, in milliseconds or in ticks. All tests that judge windows judge by this one.
 * Units may enter in any order: two clocks that differ by part of a granule, or one that steps back, make later decisions
 * count at earlier moments.
 */
export class ExactLog {
  /** The earliest first. */
  readonly #moments: number[] = []
  /** Units up to each of these moments, that one included. */
  readonly #totals: number[] = []
  /** Units of entries that are no longer here. */
  #forgotten = 0

  add(at: number, units: number): void {
    const place = this.#after(at)
    const before = this.#totalBefore(place)
    if (place === this.#moments.length) {
      this.#moments.push(at)
      this.#totals.push(before + units)
      return
    }
    this.#moments.splice(place, 0, at)
    this.#totals.splice(place, 0, before)
    for (let i = place; i < this.#totals.length; i++) this.#totals[i]! += units
  }

  clear(): void {
    this.#moments.length = 0
    this.#totals.length = 0
    this.#forgotten = 0
  }

  /** May forget the entries up to a moment: no window reaches back to it any more. */
  forget(upTo: number): void {
    const count = this.#after(upTo)
    if (2 * count < this.#moments.length + SPARE) return
    this.#forgotten = this.#totalBefore(count)
    this.#moments.splice(0, count)
    this.#totals.splice(0, count)
  }

  /** The latest moment, or -Infinity. */
  get newest(): number {
    return this.#moments.at(-1) ?? Number.NEGATIVE_INFINITY
  }

  /** Units in (at - window, at]: what happened exactly a window ago is out. */
  used(at: number, window: number): number {
    return this.#upTo(at) - this.#upTo(at - window)
  }

  /** The most units in any window that holds `at`: a fullest one ends with one of the entries. */
  mostAround(at: number, window: number): number {
    let most = 0
    for (let i = this.#moments.length - 1; i >= 0 && this.#moments[i]! >= at; i--) {
      const end = this.#moments[i]!
      if (end < at + window) most = Math.max(most, this.used(end, window))
    }
    return most
  }

  /** The entries in (at - window, at], for people. */
  tell(at: number, window: number): string {
    const told: string[] = []
    for (let i = this.#after(at - window); i < this.#after(at); i++)
      told.push(`${this.#totals[i]! - this.#totalBefore(i)} at ${this.#moments[i]}`)
    return told.join(', ')
  }

  #upTo(at: number): number {
    return this.#totalBefore(this.#after(at))
  }

  #totalBefore(place: number): number {
    return place === 0 ? this.#forgotten : this.#totals[place - 1]!
  }

  /** How many entries are not later than that. */
  #after(at: number): number {
    if (at >= this.newest) return this.#moments.length
    let [low, high] = [0, this.#moments.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#moments[middle]! <= at) low = middle + 1
      else high = middle
    }
    return low
  }
}
