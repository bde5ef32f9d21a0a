/** A read figure lets this many decisions compute theirs at once. */
const PER_READ = 8
/** The most such decisions after the last read figure. */
const MOST = 64

/**
 * Says whether the figures of a rule's decisions are read. While they are, a decision computes its figures at
 * once: the memory that they come from is in the processor's cache then. Computed later, they take several
 * times as long. A decision whose figures nobody reads should not pay for them. So each read figure allows
 * the next eight decisions to compute theirs.
 */
export class FiguresDemand {
  /** The number of decisions by TypeScript that are to compute their figures at once. */
  left = 0
  /** Has at `#at` the number of decisions by the addon that are to do so. The addon counts it down. */
  #words: Int32Array | undefined
  #at = 0

  /** The number of decisions by the addon that are to compute their figures at once. 0 without it. */
  get byAddon(): number {
    return this.#words === undefined ? 0 : this.#words[this.#at]!
  }

  set byAddon(decisions: number) {
    if (this.#words !== undefined) this.#words[this.#at] = decisions
  }

  /** Goes on with a word of memory that the addon sees. */
  countIn(words: Int32Array, at: number): void {
    const before = this.byAddon
    this.#words = words
    this.#at = at
    this.byAddon = before
  }

  /** A figure was read. */
  renew(): void {
    const words = this.#words
    if (this.left <= MOST - PER_READ) this.left += PER_READ
    if (words !== undefined && words[this.#at]! <= MOST - PER_READ) words[this.#at]! += PER_READ
  }
}
