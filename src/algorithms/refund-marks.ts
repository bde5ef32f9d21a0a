import {
  COUNT,
  GENERATION,
  GIVING,
  LAP,
  ONE_REFUND,
  ONE_TURN,
  refundsOf,
  type Shape,
  SUNK,
} from '../memory/layout.js'
import { add, compareExchange, load, type Words } from '../memory/words.js'
import { LATE } from '../range-sum/range-sum.js'

/** A charge whose stamp this is stays: nothing can tell whether a refund by key has taken it. */
export const UNKNOWN_STAMP = SUNK

/**
 * Tells whether a refund by key has taken from a bucket since a charge was made there: then the charge may be what it took, and
 * must not be taken out again.
 *
 * A bucket's mark is 0 until a refund by key takes from it. Each of those then changes it in turn, 1, 2, 1, 2. A *turn* gives it
 * mark 1 again, and raises the cell's GENERATION before. A charge keeps a *stamp*: the mark that its bucket had, and where that is
 * not 0 the generation, read after the bucket and before the compare-exchange that charges it. While mark and generation are
 * still those, no refund by key has been there.
 *
 * The mark is in the word that a charge is taken out of, the generation is not. So turns and give-backs of one cell exclude each
 * other, without waiting. Each announces itself in GIVING, by one addition, before it reads the bucket; the addition tells
 * which others are there.
 *
 *  - A give-back leaves its charge where a turn is announced.
 *  - A turn is made by a thread that was alone when it announced itself. Any other *sinks* the bucket (mark 3) in place of it. A
 *    sunk bucket comes up by the next turn, of a refund or a charge. A charge that can't turn it is not told from what refunds
 *    took, and stays.
 *
 * From the announcement of a turn on, no other thread can give the bucket mark 1 and none takes a charge out: what is read after
 * it, at mark 2, is replaced only if nothing has been charged or refunded since. So the raised generation is newer than every
 * stamp of the marks before. Without the announcement the mark could go round, to the very same word, between the generation
 * and the compare-exchange.
 *
 * A thread that dies announced stays so: its cell then sinks buckets for good, and gives nothing back after a dead turn.
 */
export class RefundMarks {
  readonly #words: Words
  readonly #shape: Shape

  constructor(words: Words, shape: Shape) {
    this.#words = words
    this.#shape = shape
  }

  /** The stamp of a charge of bucket `b`, after which it is read. */
  stampOf(base: number, b: number): number {
    const refunds = refundsOf(b)
    if (refunds === 0 || refunds === SUNK) return refunds
    return (load(this.#words, this.#beside(base) + GENERATION) << 2) | refunds
  }

  /** Announces a turn, before the bucket is read; then `endTurn`. Whether this thread is alone, and may make it. */
  beginTurn(base: number): boolean {
    return add(this.#words, this.#beside(base) + GIVING, ONE_TURN) === 0
  }

  /** The bucket `b`, read after `beginTurn`, with its next mark. Raises the generation again at each try. */
  turned(base: number, b: number, isAlone: boolean): number {
    const mark = isAlone ? 1 : SUNK
    if (isAlone) add(this.#words, this.#beside(base) + GENERATION, 1)
    return b + (mark - refundsOf(b)) * ONE_REFUND
  }

  endTurn(base: number): void {
    add(this.#words, this.#beside(base) + GIVING, -ONE_TURN)
  }

  /**
   * Charges a sunk bucket of this lap, and brings it up where this thread is alone. What stands there then, with the charge's
   * stamp in `charge`; LATE where the bucket is another meanwhile.
   */
  chargeSunk(charge: { stamp: number }, base: number, at: number, lap: number, cost: number): number {
    const isAlone = this.beginTurn(base)
    const b = load(this.#words, at)
    let charged = LATE
    if ((b & LAP) === lap && refundsOf(b) === SUNK && (b & COUNT) + cost <= COUNT) {
      const turned = this.turned(base, b, isAlone)
      charge.stamp = this.stampOf(base, turned)
      if (compareExchange(this.#words, at, b, turned + cost) === b) charged = turned + cost
    }
    this.endTurn(base)
    return charged
  }

  /** Before a charge is taken out of a marked bucket; then `end`. False: a refund by key has been there, or may be. */
  begin(base: number, stamp: number): boolean {
    const beside = this.#beside(base)
    if (add(this.#words, beside + GIVING, 1) >>> 0 >= ONE_TURN) return false
    return ((load(this.#words, beside + GENERATION) << 2) | (stamp & 3)) === stamp
  }

  end(base: number): void {
    add(this.#words, this.#beside(base) + GIVING, -1)
  }

  #beside(base: number): number {
    const { waysAt, wayWords, besideAt, besideWords } = this.#shape
    return besideAt + ((base - waysAt) / wayWords) * besideWords
  }
}
