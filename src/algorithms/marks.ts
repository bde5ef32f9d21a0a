import { GENERATION, GIVING, ONE_REFUND, refundsOf, type Shape, SUNK } from '../memory/layout.js'
import { add, load, type Words } from '../memory/words.js'

/** A charge whose stamp this is stays: nothing can tell whether a refund by key has taken it. */
export const UNTOLD = SUNK

/**
 * Tells whether a refund by key has taken from a bucket since a charge was made there: then the charge may be what it took, and
 * must not be taken out again.
 *
 * A bucket's mark is 0 until a refund by key takes from it. Each of those then changes it in turn, 1, 2, 1, 2; and before it
 * begins at 1 again, it raises the cell's GENERATION. A charge keeps a *stamp*: the mark that its bucket had, and where that is
 * not 0 the generation, read after the bucket and before the compare-exchange that charges it. While mark and generation are
 * still those, no refund by key has been there.
 *
 * The mark is in the word that a charge is taken out of, the generation is not: a mark could begin anew between a look at the
 * generation and the compare-exchange. So a thread that takes a charge out of a marked bucket counts itself in GIVING first,
 * and looks at the generation after that. A refund by key raises GENERATION first and looks at GIVING after that. One of the
 * two sees the other: the thread leaves its charge, or the refund *sinks* the bucket (mark 3) in place of beginning anew. A
 * sunk bucket comes up at 1, of a newer generation, with the first charge or refund that finds nobody in GIVING. A charge that
 * does find somebody is not told from what refunds took, and stays.
 *
 * A thread that dies in GIVING leaves it raised: its cell then sinks buckets for good, and nothing else changes.
 */
export class Marks {
  readonly #words: Words
  readonly #shape: Shape

  constructor(words: Words, shape: Shape) {
    this.#words = words
    this.#shape = shape
  }

  /** The bucket `b`, of the present lap, as a charge finds it: where it can come up, it does. */
  raised(base: number, b: number): number {
    return refundsOf(b) === SUNK && !this.#isGiving(base) ? b - (SUNK - 1) * ONE_REFUND : b
  }

  /** The stamp of a charge of bucket `b`, after which it is read. */
  stampOf(base: number, b: number): number {
    const refunds = refundsOf(b)
    if (refunds === 0 || refunds === SUNK) return refunds
    return (load(this.#words, this.#beside(base) + GENERATION) << 2) | refunds
  }

  /** The mark that a refund by key gives a bucket that it has just read, with this one. */
  next(base: number, refunds: number): number {
    if (refunds < 2) return refunds + 1
    if (refunds === 2) add(this.#words, this.#beside(base) + GENERATION, 1)
    return this.#isGiving(base) ? SUNK : 1
  }

  /** Before a charge is taken out of a marked bucket; then `end`. False: a refund by key has been there. */
  begin(base: number, stamp: number): boolean {
    const beside = this.#beside(base)
    add(this.#words, beside + GIVING, 1)
    return ((load(this.#words, beside + GENERATION) << 2) | (stamp & 3)) === stamp
  }

  end(base: number): void {
    add(this.#words, this.#beside(base) + GIVING, -1)
  }

  #isGiving(base: number): boolean {
    return load(this.#words, this.#beside(base) + GIVING) !== 0
  }

  #beside(base: number): number {
    const { waysAt, wayWords, besideAt, besideWords } = this.#shape
    return besideAt + ((base - waysAt) / wayWords) * besideWords
  }
}
