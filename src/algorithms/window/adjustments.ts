import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { BUCKETS, COUNT, LAP, ONE_REFUND, REFUNDS, refundsOf, TICK } from '../../memory/layout.js'
import { compareExchange, load } from '../../memory/words.js'
import { LATE, OVERFLOWN } from '../../range-sum/range-sum.js'
import { type Charge, type Charged, GONE } from '../algorithm.js'
import type { Charges } from './charges.js'
import type { RefundMarks } from './refund-marks.js'
import type { Ring } from './ring.js'
import { SummedAdjustments } from './summed-adjustments.js'
import type { SummedCells } from './summed-cells.js'

/** What a window of buckets has. */
interface Window extends SummedCells {
  readonly ring: Ring
  readonly charges: Charges
  readonly marks: RefundMarks
}

/** Takes units out of buckets, and charges what is not an admission. */
export class Adjustments extends SummedAdjustments {
  readonly #window: Window

  constructor(window: Window) {
    super(window)
    this.#window = window
  }

  /**
   * Gives back `cost` units of one admission, charged with this stamp (`refund-marks.ts`). Returns
   * false if the tick has left the window, or if a refund by key may have taken the charge. The way may have
   * another key by now. Either that key took over this charge with the others, or the way's tick is more than
   * a window past e.
   */
  giveBack(way: number, { tick, receipt }: Charge, cost: number, reading: Reading): boolean {
    const { ring, words } = this.#window
    const base = this.#window.base(way)
    this.#window.enter(base, reading)
    if (ring.distance(load(words, base + TICK), tick) >= ring.size) return false
    return this.#window.charges.undo(base, tick, cost, receipt)
  }

  /**
   * Takes up to `most` units out, the oldest first, so that no unit counts for too short a time. Each bucket
   * taken from gets another refund mark: a decision under way there can't know whether its charge was taken,
   * and leaves it.
   * @returns the number of units, or GONE if the way was not the key's before any was taken
   */
  refund(way: number, lo: number, hi: number, most: number, reading: Reading): number {
    const { ring } = this.#window
    const base = this.#window.base(way)
    this.#window.enter(base, reading)
    let newest = this.tickOf(way, lo, hi)
    if (newest === undefined) return GONE
    let left = most
    let length = ring.size
    for (let tries = 0; left > 0; ) {
      const slot = ring.slot(newest)
      const age = ring.sums.find(base, slot, ring.lap, length, 0) // of the oldest bucket that counts anything
      const now = this.tickOf(way, lo, hi)
      if (now === undefined) break
      if (now !== newest) {
        newest = now // start again: see `range-sum/fenwick.ts`
        length = ring.size
        tries = again(tries)
        continue
      }
      if (age < 0) break
      length = age
      const oldest = ring.after(newest, -age)
      const taken = this.#refundBucket(way, lo, hi, base + BUCKETS + ring.slot(oldest), ring.lap, left)
      if (taken === undefined) break
      if (taken > 0) ring.sums.takeOut(base, ring.slot(oldest), ring.lap, taken)
      left -= taken
    }
    return this.taken(base, most - left)
  }

  /**
   * Takes up to `most` units out of one bucket. Returns their number, or undefined if the way is not the
   * key's.
   */
  #refundBucket(
    way: number,
    lo: number,
    hi: number,
    at: number,
    lap: number,
    most: number,
  ): number | undefined {
    const { marks, words } = this.#window
    const base = this.#window.base(way)
    let isAlone: boolean | undefined // undefined while no turn is announced
    let taken: number | undefined
    for (let tries = 0; ; tries = again(tries)) {
      const b = load(words, at)
      taken = (b & LAP) === lap ? Math.min(most, b & COUNT) : 0
      if (taken === 0) break
      // After b: the way's next key may have charged this bucket by now, and its charge must stay.
      if (this.tickOf(way, lo, hi) === undefined) {
        taken = undefined
        break
      }
      if (refundsOf(b) >= 2 && isAlone === undefined) {
        isAlone = marks.beginTurn(base)
        continue // read the bucket after the announcement
      }
      const marked = refundsOf(b) < 2 ? b + ONE_REFUND : marks.turned(base, b, isAlone === true)
      if (compareExchange(words, at, b, marked - taken) === b) break
    }
    if (isAlone !== undefined) marks.endTurn(base)
    return taken
  }

  undo(base: number, { amount, e }: Charged): void {
    const { charges } = this.#window
    charges.undo(base, e, amount, charges.stamp)
  }

  /**
   * If not all units fit, because another thread has carried them, too, the bucket sinks: that thread must leave
   * its carry there.
   */
  override carry(base: number, units: number, reading: Reading): Charged | undefined {
    const carried = super.carry(base, units, reading)
    if (carried !== undefined && carried.amount < units) this.#sink(base, carried.e)
    return carried
  }

  #sink(base: number, e: number): void {
    const { ring, words } = this.#window
    const at = base + BUCKETS + ring.slot(e)
    for (let tries = 0; ; tries = again(tries)) {
      const b = load(words, at)
      if ((b & LAP) !== ring.lap || compareExchange(words, at, b, b | REFUNDS) === b) return
    }
  }

  /** The bucket stops at its largest count. (For nodes see `docs/explanation/range-sums.md`.) */
  protected chargeAsFits(base: number, units: number, tickOf: () => number | undefined): Charged | undefined {
    const { charges, ring, words } = this.#window
    for (let tries = 0; ; tries = again(tries)) {
      const e = tickOf()
      if (e === undefined) return undefined
      const charged = charges.charge(base, e, units)
      if (charged === LATE) continue
      if (charged !== OVERFLOWN) return { amount: units, e }
      const b = load(words, base + BUCKETS + ring.slot(e))
      const { lap } = ring
      const counted = (b & LAP) === lap ? b & COUNT : 0
      const amount = Math.min(units, COUNT - counted, ring.sums.roomAbove(base, ring.slot(e), lap))
      if (amount === 0) return { amount, e }
      const chargedLess = charges.charge(base, e, amount)
      if (chargedLess !== LATE && chargedLess !== OVERFLOWN) return { amount, e }
    }
  }
}
