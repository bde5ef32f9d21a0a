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
} from '../../memory/layout.js'
import { add, compareExchange, load, type Words } from '../../memory/words.js'
import { LATE } from '../../range-sum/range-sum.js'

/** The stamp of a charge in a sunk bucket. It is never given back: a refund by key may have taken it. */
export const UNKNOWN_STAMP = SUNK

/**
 * Tells whether a refund by key has taken units from a bucket since a charge was made there. If so, the
 * refund may have taken that charge, and it must not be taken out again.
 *
 * A bucket's mark is 0 until a refund by key takes from it. Each further one changes the mark: 1, 2, 1, 2. A
 * *turn* is the change to 1 from 2, or from the sunk mark 3 (below). It first raises the cell's generation. A
 * charge's stamp is the mark of its bucket. If the mark is not 0, the stamp also has the generation, read
 * after the bucket and before the CAS that charges it. While mark and generation equal the stamp, no refund
 * by key has taken from the bucket.
 *
 * The mark is in the word from which a charge is taken out, but the generation is one of the way's extra
 * words. So turns and give-backs of one cell exclude each other, without waiting. Each announces itself in
 * GIVING, by one addition, before it reads the bucket. The old value tells which others are announced.
 *
 *  - A give-back leaves its charge in the bucket while a turn is announced.
 *  - A thread may make a turn if it was alone when it announced itself. Any other thread *sinks* the bucket
 *    instead (mark 3). The next turn, by a refund or a charge, raises a sunk bucket again. A charge that
 *    can't raise it is never given back.
 *
 * After a turn is announced, no other thread can give the bucket mark 1, and none takes a charge out. The
 * turn reads the bucket at mark 2 after that, and replaces it only if nothing has been charged or refunded
 * since. So the raised generation is newer than every stamp with an earlier mark. Without the announcement,
 * the mark could go round to the same word between the generation and the CAS.
 *
 * The announcement of a dead thread stays. The cell then sinks buckets for good. After a dead turn it gives
 * nothing back.
 */
export class RefundMarks {
  readonly #words: Words
  readonly #shape: Shape

  constructor(words: Words, shape: Shape) {
    this.#words = words
    this.#shape = shape
  }

  /** The stamp of a charge of bucket `b`. The caller has read `b` before. */
  stampOf(base: number, b: number): number {
    const refunds = refundsOf(b)
    if (refunds === 0 || refunds === SUNK) return refunds
    return (load(this.#words, this.#extra(base) + GENERATION) << 2) | refunds
  }

  /**
   * Announces a turn, before the bucket is read. Returns whether this thread is alone. `endTurn` must follow.
   */
  beginTurn(base: number): boolean {
    return add(this.#words, this.#extra(base) + GIVING, ONE_TURN) === 0
  }

  /**
   * Bucket `b`, read after `beginTurn`, with its next mark. Each call by a thread that is alone raises the
   * generation.
   */
  turned(base: number, b: number, isAlone: boolean): number {
    const mark = isAlone ? 1 : SUNK
    if (isAlone) add(this.#words, this.#extra(base) + GENERATION, 1)
    return b + (mark - refundsOf(b)) * ONE_REFUND
  }

  endTurn(base: number): void {
    add(this.#words, this.#extra(base) + GIVING, -ONE_TURN)
  }

  /**
   * Charges a sunk bucket of this lap, and raises it if this thread is alone. Sets the charge's stamp.
   * Returns the new word, or LATE if the bucket has changed meanwhile.
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

  /**
   * Announces a give-back from a marked bucket. Returns false if a refund by key has taken from it, or may be
   * taking. `endGiveBack` must follow.
   */
  beginGiveBack(base: number, stamp: number): boolean {
    const extra = this.#extra(base)
    if (add(this.#words, extra + GIVING, 1) >>> 0 >= ONE_TURN) return false
    return ((load(this.#words, extra + GENERATION) << 2) | (stamp & 3)) === stamp
  }

  endGiveBack(base: number): void {
    add(this.#words, this.#extra(base) + GIVING, -1)
  }

  #extra(base: number): number {
    const { waysAt, wayWords, extraAt, extraWords } = this.#shape
    return extraAt + ((base - waysAt) / wayWords) * extraWords
  }
}
