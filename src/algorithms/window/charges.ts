import { again } from '../../core/tries.js'
import { BUCKETS, COUNT, LAP, ONE_REFUND, REFUNDS, type Shape, TICK } from '../../memory/layout.js'
import { compareExchange, load, read, type Words } from '../../memory/words.js'
import { CHARGED, LATE, OVERFLOWN } from '../../range-sum/range-sum.js'
import { type RefundMarks, UNKNOWN_STAMP } from './refund-marks.js'
import type { Ring } from './ring.js'

/** Gives a cell a new epoch (`sliding-window.ts`, "Taking units out of a bucket"). */
interface Epoch {
  bumpEpoch(base: number): void
}

/**
 * Puts charges into buckets, and into the nodes above them, and takes out those that were not admitted. Step
 * 3 of a decision (`sliding-window.ts`), except for the commit, and the end of step 4.
 */
export class Charges {
  readonly #words: Words
  readonly #ring: Ring
  readonly #marks: RefundMarks
  readonly #hasNodes: boolean
  readonly #epoch: Epoch
  /** The stamp of the last charge (`refund-marks.ts`). */
  stamp = 0

  constructor(words: Words, shape: Shape, ring: Ring, marks: RefundMarks, epoch: Epoch) {
    this.#words = words
    this.#ring = ring
    this.#marks = marks
    this.#hasNodes = shape.sums !== 'linear'
    this.#epoch = epoch
  }

  /**
   * Charges tick e and sets `stamp`. Returns the bucket's new word; or LATE, if the cell's tick has moved
   * on; or OVERFLOWN, which only charges under way and penalties cause.
   */
  charge(base: number, e: number, cost: number): number {
    if (!this.#hasNodes) return this.#chargeBucket(base, e, cost)
    const ring = this.#ring
    const { sums } = ring
    const slot = ring.slot(e)
    const { lap } = ring
    const above = sums.charge(base, e, slot, lap, cost)
    const charged = above === CHARGED ? this.#chargeBucket(base, e, cost) : above
    if (charged !== LATE && charged !== OVERFLOWN) return charged
    if (above === CHARGED) sums.takeOut(base, slot, lap, cost)
    this.#epoch.bumpEpoch(base) // a node may have counted the charge for a moment
    return charged
  }

  #chargeBucket(base: number, e: number, cost: number): number {
    const words = this.#words
    const ring = this.#ring
    const at = base + BUCKETS + ring.slot(e)
    for (let tries = 0; ; tries = again(tries)) {
      const b = load(words, at)
      let charged: number
      if ((b & LAP) === ring.lap) {
        if ((b & COUNT) + cost > COUNT) return OVERFLOWN
        if ((b & REFUNDS) === REFUNDS) return this.#marks.chargeSunk(this, base, at, ring.lap, cost)
        this.stamp = this.#marks.stampOf(base, b)
        charged = b + cost
      } else {
        // The tick is read after b: see "A bucket of another lap" in `sliding-window.ts`.
        if (ring.distance(read(words, base + TICK), e) >= ring.slots) return LATE
        this.stamp = 0
        charged = ring.lap | cost
      }
      if (compareExchange(words, at, b, charged) === b) return charged
    }
  }

  /**
   * Takes a charge out of its bucket. Returns false if, by its stamp, a refund by key may have taken it
   * already.
   */
  undo(base: number, e: number, cost: number, stamp: number): boolean {
    if (stamp === UNKNOWN_STAMP) return false
    const marks = this.#marks
    const ring = this.#ring
    const isMarked = stamp !== 0
    const isTaken = (!isMarked || marks.beginGiveBack(base, stamp)) && this.#takeOut(base, e, cost, stamp)
    if (isMarked) marks.endGiveBack(base)
    if (!isTaken) return false
    ring.sums.takeOut(base, ring.slot(e), ring.lap, cost)
    this.#epoch.bumpEpoch(base)
    return true
  }

  /** Returns false if the bucket has another lap or another refund mark than at the charge. */
  #takeOut(base: number, e: number, cost: number, stamp: number): boolean {
    const words = this.#words
    const ring = this.#ring
    const at = base + BUCKETS + ring.slot(e)
    const expected = ring.lap | ((stamp & 3) * ONE_REFUND)
    for (let tries = 0; ; tries = again(tries)) {
      const b = load(words, at)
      if ((b & (LAP | REFUNDS)) !== expected || (b & COUNT) < cost) return false
      if (compareExchange(words, at, b, b - cost) === b) return true
    }
  }
}
