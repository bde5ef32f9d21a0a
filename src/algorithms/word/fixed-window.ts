/**
 * Counts in windows that follow each other, by the protocol of `word-cells.ts`. The meter is the count of the
 * window that began with the cell's tick.
 *
 * With `align: 'clock'` a tick is a window. With `align: 'first'` a window has up to 4,096 ticks, and begins in
 * that of its first charge: while the meter is 0 (a key that was only blocked, or whose charges were given back),
 * a decision moves the tick to its reading. It does so without a mark, which would empty what another thread has
 * charged since the meter was 0. That charge then counts in the window that begins with the reading. The reading
 * is from before the charge, so that window begins no later than it would by a decision that began then.
 *
 * A refund by key and a decision that is given back must not take the same unit. So a decision is given back
 * only if its window has had no refund by key since: its epoch says so. A block changes the epoch, too. Then it is
 * given back if no refund by key has been counted lately: nothing else takes units out of a window. A window that
 * moved in the middle of its first charge has another tick than that decision has found. The next one begins at
 * least a window after either: so ticks less than a window apart are of one window.
 */
import type { Reading } from '../../core/reading.js'
import type { Ticks } from '../../core/ticks.js'
import { EPOCH, ONE_EPOCH, type Shape } from '../../memory/layout.js'
import type { Words } from '../../memory/words.js'
import { isSettled, METER, tickOf } from './meter.js'
import { areFew } from './recent-refunds.js'
import { WordAdjustments } from './word-adjustments.js'
import { type Refunded, WordCells, type WordCharge } from './word-cells.js'
import { WordEstimates } from './word-estimates.js'

/** @see Algorithm */
export class FixedWindow extends WordCells {
  readonly estimates = new WordEstimates(this)
  readonly adjustments = new WordAdjustments(this)
  override readonly hasWholeMs: boolean
  readonly most = { mask: METER, perTick: 0, full: 0 }
  readonly renewsEpoch = false
  readonly refundTicks: number
  readonly chargeTicks: number
  readonly runsOff = false
  /** The ticks of a window. */
  readonly #size: number

  constructor(words: Words, shape: Shape, originMs: number, ticks: Ticks) {
    super(words, shape, originMs, ticks)
    this.#size = shape.buckets
    this.refundTicks = shape.buckets
    this.chargeTicks = shape.buckets
    this.hasWholeMs = Number.isInteger(ticks.granuleMs) && Number.isInteger(ticks.offsetMs)
  }

  protected emptyAt(): number {
    return 0
  }

  protected isOver(behind: number): boolean {
    return behind >= this.#size
  }

  ticksToEmpty(v: number): number {
    return (v & METER) === 0 ? 0 : this.#size
  }

  /** A window without units moves: it begins with the next charge. */
  protected mustMove(_base: number, v: number): boolean {
    return (v & METER) === 0
  }

  protected override isPresent(v: number, w: number, reading: Reading): boolean {
    return isSettled(w) && (reading.tick - tickOf(w)) >>> 0 < ((v & METER) === 0 ? 1 : this.#size)
  }

  charged(v: number, _w: number, cost: number, limit: number): number {
    return (v & METER) + cost > limit ? v : v + cost
  }

  penalized(v: number, _w: number, cost: number): number {
    return (v & ~METER) | Math.min((v & METER) + cost, METER)
  }

  raised(v: number, _w: number, cost: number): number {
    return (v & ~METER) | Math.max(v & METER, Math.min(cost, METER))
  }

  unitsAt(v: number, w: number, reading: Reading): number {
    return this.ticksSince(w, reading) >= this.#size ? 0 : v & METER
  }

  untilRoom(v: number, w: number, cost: number, limit: number, reading: Reading): number {
    return (v & METER) + cost > limit ? this.#untilEnd(w, reading) : 0
  }

  untilOver(v: number, w: number, reading: Reading): number {
    return (v & METER) === 0 ? 0 : this.#untilEnd(w, reading)
  }

  #untilEnd(w: number, reading: Reading): number {
    const end = reading.absoluteTick - this.ticksSince(w, reading) + this.#size
    return Math.max(0, this.ticks.untilPosition(reading.nowMs, end))
  }

  refunded(v: number, w: number, most: number, _limit: number, reading: Reading): Refunded | undefined {
    const units = Math.min(most, this.unitsAt(v, w, reading))
    return units > 0 ? { next: (v - units + ONE_EPOCH) | 0, units } : undefined
  }

  givenBack(v: number, w: number, charge: WordCharge): number | undefined {
    const { cost, receipt, refunds } = charge
    const isSameEpoch = areFew(refunds) && ((v ^ receipt) & EPOCH) === 0
    const counts = this.#isSameWindow(charge.w, w) && (isSameEpoch || !refunds.byKey)
    return counts && (v & METER) >= cost ? v - cost : undefined
  }

  /** Another thread may have moved the window of the charge after its tick was read, by less than a window. */
  #isSameWindow(charged: number, w: number): boolean {
    return this.time.distance(tickOf(w), tickOf(charged)) < this.#size
  }
}
