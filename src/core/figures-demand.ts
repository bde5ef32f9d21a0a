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
  /** The number of decisions by the addon that are to compute their figures at once: word 0. The addon counts it down. */
  byAddon: Int32Array = new Int32Array(1)

  /** Goes on with a word of memory that the addon sees. */
  countIn(word: Int32Array): void {
    word[0] = this.byAddon[0]!
    this.byAddon = word
  }

  /** A figure was read. */
  renew(): void {
    const word = this.byAddon
    if (this.left <= MOST - PER_READ) this.left += PER_READ
    if (word[0]! <= MOST - PER_READ) word[0]! += PER_READ
  }
}
