import type { Reading } from '../core/reading.js'
import {
  ADM,
  BLOCKED,
  BUCKETS,
  COUNT,
  LAP,
  MAX_TOTAL,
  ONE_EPOCH,
  ONE_REFUND,
  refundsOf,
  TICK,
} from '../memory/layout.js'
import { compareExchange, load, read } from '../memory/words.js'
import { LATE, OVERFLOWN } from '../range-sum/range-sum.js'
import { type CellAdjustments, type Charge, GONE } from './algorithm.js'
import { Blocking } from './blocking.js'
import type { SlidingWindow } from './sliding-window.js'

/**
 * Changes a key's counts in other ways than by admission: the same words in the same order as in
 * `sliding-window.ts`. Each method returns GONE if the way is not the key's any more. The caller then looks
 * the key up again.
 */
export class Adjustments implements CellAdjustments {
  readonly #window: SlidingWindow
  readonly #blocking: Blocking

  constructor(window: SlidingWindow) {
    this.#window = window
    this.#blocking = new Blocking(window)
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
    let newest = this.#tickOf(way, lo, hi)
    if (newest === undefined) return GONE
    let left = most
    for (let length = ring.size; left > 0; ) {
      const slot = ring.slot(newest)
      const age = ring.sums.find(base, slot, ring.lap, length, 0) // of the oldest bucket that counts anything
      const now = this.#tickOf(way, lo, hi)
      if (now === undefined) break
      if (now !== newest) {
        newest = now // start again: see `range-sum/fenwick.ts`
        length = ring.size
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
    return this.#taken(base, most - left)
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
    for (;;) {
      const b = load(words, at)
      taken = (b & LAP) === lap ? Math.min(most, b & COUNT) : 0
      if (taken === 0) break
      // After b: the way's next key may have charged this bucket by now, and its charge must stay.
      if (this.#tickOf(way, lo, hi) === undefined) {
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

  /**
   * Charges `cost` units even if there is no room. The bucket stops at its largest count, and the total at
   * MAX_TOTAL. Both are over every limit. (For nodes see `docs/explanation/range-sums.md`.) The epoch is
   * always new, because a total at MAX_TOTAL does not change.
   */
  penalize(way: number, lo: number, hi: number, cost: number, reading: Reading): boolean | typeof GONE {
    const { words } = this.#window
    const base = this.#window.base(way)
    this.#window.enter(base, reading)
    for (;;) {
      const charged = this.chargeAsFits(base, cost, () => this.#tickOf(way, lo, hi))
      if (charged === undefined) return GONE
      const { amount, e } = charged
      if (amount === 0) return true
      const { stamp } = this.#window.charges
      for (;;) {
        const v = load(words, base + ADM)
        if (!this.#window.isOf(v, way, lo, hi) || read(words, base + TICK) !== e) break
        const total = v & COUNT
        const next = total === BLOCKED ? BLOCKED : Math.min(total + amount, MAX_TOTAL)
        if (compareExchange(words, base + ADM, v, ((v & ~COUNT) + ONE_EPOCH) | next) !== v) continue
        this.#window.epochs.count(base)
        return true
      }
      this.#window.charges.undo(base, e, amount, stamp)
    }
  }

  /**
   * Charges as many of `units` as fit, in the tick that `tickOf` returns. Returns the charge, or undefined if
   * `tickOf` returns undefined.
   */
  chargeAsFits(
    base: number,
    units: number,
    tickOf: () => number | undefined,
  ): { amount: number; e: number } | undefined {
    const { charges, ring, words } = this.#window
    for (;;) {
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

  get untilOfNextTry(): number {
    return this.#blocking.untilOfNextTry
  }

  block(way: number, lo: number, hi: number, until: number): boolean | typeof GONE {
    return this.#blocking.block(way, lo, hi, until)
  }

  /** Ends a block by a sum. Returns whether the key was blocked. */
  unblock(way: number, lo: number, hi: number, reading: Reading): boolean | typeof GONE {
    const { words } = this.#window
    const base = this.#window.base(way)
    this.#window.enter(base, reading)
    for (let was = false; ; ) {
      const v = load(words, base + ADM)
      if (!this.#window.isOf(v, way, lo, hi)) return GONE
      if ((v & COUNT) !== BLOCKED) return was
      was = this.#window.isBlocked(base, v, reading.nowMs)
      if (!this.#window.resum(base, v, read(words, base + TICK), reading)) continue
      this.#window.epochs.count(base)
      return was
    }
  }

  /** The cell's tick, read after the admission word, or undefined if the way is not the key's. */
  #tickOf(way: number, lo: number, hi: number): number | undefined {
    const base = this.#window.base(way)
    const v = load(this.#window.words, base + ADM)
    return this.#window.isOf(v, way, lo, hi) ? read(this.#window.words, base + TICK) : undefined
  }

  #taken(base: number, taken: number): number {
    if (taken > 0) this.#window.bumpEpoch(base)
    return taken
  }
}
