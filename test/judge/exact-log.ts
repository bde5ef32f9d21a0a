/** Entries are removed only if this many more are forgotten than kept: each removal moves the kept ones. */
const SPARE = 64

/**
 * An exact log: all units with their moments, in milliseconds or in ticks. Every test that judges windows
 * uses it. Units may be added in any order: if two clocks differ by part of a granule, or one steps back, a
 * later decision may count at an earlier moment.
 */
export class ExactLog {
  /** In ascending order. */
  readonly #moments: number[] = []
  /** For each moment the units up to it, itself included. */
  readonly #totals: number[] = []
  /** The units of the removed entries. */
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

  /** Allows the log to remove entries up to this moment: no later window includes them. */
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

  /** The units in (at - window, at]. A unit exactly a window ago is out. */
  used(at: number, window: number): number {
    return this.#upTo(at) - this.#upTo(at - window)
  }

  /** The most units in any window that contains `at`. A fullest window ends at one of the entries. */
  mostAround(at: number, window: number): number {
    let most = 0
    for (let i = this.#moments.length - 1; i >= 0 && this.#moments[i]! >= at; i--) {
      const end = this.#moments[i]!
      if (end < at + window) most = Math.max(most, this.used(end, window))
    }
    return most
  }

  /** The entries in (at - window, at] as text. */
  describe(at: number, window: number): string {
    const entries: string[] = []
    for (let i = this.#after(at - window); i < this.#after(at); i++)
      entries.push(`${this.#totals[i]! - this.#totalBefore(i)} at ${this.#moments[i]}`)
    return entries.join(', ')
  }

  #upTo(at: number): number {
    return this.#totalBefore(this.#after(at))
  }

  #totalBefore(place: number): number {
    return place === 0 ? this.#forgotten : this.#totals[place - 1]!
  }

  /** The number of entries up to this moment. */
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
