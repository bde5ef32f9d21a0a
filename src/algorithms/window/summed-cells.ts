import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import {
  ADM,
  AS_OF,
  BLOCKED,
  COUNT,
  EPOCH,
  LIVE,
  MAX_TOTAL,
  NO_NOTE,
  NOTED,
  ONE_EPOCH,
  STATE,
  TICK,
} from '../../memory/layout.js'
import { compareExchange, load, read, write } from '../../memory/words.js'
import { LATE, OVERFLOWN } from '../../range-sum/range-sum.js'
import { ADMITTED, type Algorithm, type Charged, type FULL, GONE, SUSPECT, UNDECIDED } from '../algorithm.js'
import { KeyedCells } from '../keyed-cells.js'

/**
 * The part of the protocol in `sliding-window.ts` that does not depend on how a cell counts its units: in
 * buckets, or each for itself (`sliding-log.ts`). A decision commits what it has charged, or takes it out. A
 * sum of what was charged becomes the total of the admission word.
 */
export abstract class SummedCells extends KeyedCells implements Algorithm {
  abstract readonly estimates: Algorithm['estimates']
  abstract readonly adjustments: Algorithm['adjustments'] & {
    /** Charges as many of `units` as fit, in the cell's tick. */
    carry(base: number, units: number, reading: Reading): Charged | undefined
    /** Takes the last charge out. */
    undo(base: number, charged: Charged): void
  }
  abstract readonly hasWholeMs: boolean
  readonly blockMask = BLOCKED
  readonly most = { mask: COUNT, perTick: 0, full: 0 }
  /** The stamp of the last charge. @see Algorithm.chargedStamp */
  abstract readonly stamp: number

  abstract touch(way: number, tick: number): number
  abstract attempt(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    reading: Reading,
  ): typeof UNDECIDED | typeof FULL | typeof ADMITTED | typeof SUSPECT
  abstract isExpired(base: number, tick: number, reading: Reading): boolean
  abstract isPast(base: number, tick: number, reading: Reading): boolean
  abstract begin(base: number, reading: Reading): void

  /** Moves the tick of a cell, which was `tick`, to the reading's. Returns by how many ticks. */
  protected abstract move(base: number, tick: number, reading: Reading): number
  /** A note tells ticks apart that are less than 2 to this power away. */
  protected abstract readonly stepBits: number
  /** Charges units in tick e. Returns LATE, if the cell's tick has moved on, or OVERFLOWN, if they do not fit. */
  protected abstract charge(base: number, e: number, cost: number, reading: Reading): number
  /** Takes the last charge out. Returns whether it did. */
  protected abstract undo(base: number, e: number, cost: number, stamp: number): boolean
  /** The units in the window that ends in tick e, or below 0 if the tick has moved on. Sets `noteTime`. */
  protected abstract sum(base: number, e: number, reading: Reading): number
  /** How long the last sum holds, as bits of a note. */
  protected abstract readonly noteTime: number
  /** Whether a note of the cell's present epoch holds in tick e. */
  protected abstract holds(note: number, e: number, reading: Reading): boolean

  /** Brings a cell's tick to the reading. The read is plain: if it is late, the compare-exchange fails. */
  enter(base: number, reading: Reading): void {
    const tick = read(this.words, base + TICK)
    if (tick !== reading.tick) this.#advance(base, tick, reading)
  }

  #advance(base: number, tick: number, reading: Reading): void {
    const moved = this.move(base, tick, reading)
    // A clock that stepped far back moves the tick on by almost the whole modulus.
    const passed = moved >= 2 ** this.stepBits
    if (passed || (moved > 0 && tick >>> this.stepBits !== reading.tick >>> this.stepBits))
      this.bumpEpoch(base)
  }

  /** Decides on `cost` units, 1 to `limit`. Returns ADMITTED, SUSPECT, FULL, or GONE if the way is not the key's. */
  decide(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number {
    const { words } = this
    const base = this.base(way)
    this.enter(base, reading)
    for (let hasOverflown = false, tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if (!this.isOf(v, way, lo, hi)) return GONE
      const e = read(words, base + TICK)
      if ((v & COUNT) + cost > limit) {
        if (this.isKnownFull(base, v, e, reading)) return this.full(v, e)
        this.resum(base, v, e, reading)
        continue // v has changed, by this sum or by another operation
      }
      const charged = this.charge(base, e, cost, reading)
      if (charged === LATE) continue
      if (charged === OVERFLOWN) {
        // The total does not count charges under way, nor those of dead threads. A sum does: one more look.
        if (hasOverflown) return this.full(v, e)
        hasOverflown = true
        this.resum(base, v, e, reading)
        continue
      }
      const committed = this.commit(way, lo, hi, cost, limit, e, v, this.stamp)
      if (committed !== UNDECIDED) return committed
    }
  }

  receipt(stamp: number): number {
    return stamp
  }

  /** Commits a charge made in tick e with this stamp: ADMITTED or SUSPECT. Returns UNDECIDED if it was taken out instead. */
  protected commit(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    e: number,
    v: number,
    stamp: number,
  ): typeof ADMITTED | typeof SUSPECT | typeof UNDECIDED {
    const found = compareExchange(this.words, this.base(way) + ADM, v, v + cost)
    if (found !== v && !this.#commitAgain(way, lo, hi, cost, limit, e, stamp, found)) return UNDECIDED
    const adm = found === v ? v + cost : this.lastAdm
    this.lastAdm = adm
    this.chargedTick = e
    this.chargedStamp = stamp
    return (adm & COUNT) < this.suspectFrom ? ADMITTED : SUSPECT
  }

  /** Step 4, after the first compare-exchange found `x`. */
  #commitAgain(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    e: number,
    stamp: number,
    x: number,
  ): boolean {
    const base = this.base(way)
    for (let tries = 0; this.isOf(x, way, lo, hi); tries = again(tries)) {
      if (read(this.words, base + TICK) !== e || (x & COUNT) + cost > limit) break
      const next = (x + ONE_EPOCH + cost) | 0
      const found = compareExchange(this.words, base + ADM, x, next)
      if (found === x) {
        this.lastAdm = next
        return true
      }
      x = found
    }
    this.undo(base, e, cost, stamp)
    return false
  }

  /**
   * Counts `amount` units that were charged in tick e even if there was no room. The epoch is always new,
   * because a total at MAX_TOTAL does not change. Returns false if the way is not the key's any more, or if
   * the cell has another tick.
   */
  commitPenalty(way: number, lo: number, hi: number, amount: number, e: number): boolean {
    const { words } = this
    const base = this.base(way)
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if (!this.isOf(v, way, lo, hi) || read(words, base + TICK) !== e) return false
      const total = v & COUNT
      const next = total === BLOCKED ? BLOCKED : Math.min(total + amount, MAX_TOTAL)
      if (compareExchange(words, base + ADM, v, ((v & ~COUNT) + ONE_EPOCH) | next) !== v) continue
      this.epochs.count(base)
      return true
    }
  }

  /** Gives the cell a new epoch and ends its note, after units were taken out. */
  bumpEpoch(base: number): void {
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(this.words, base + ADM)
      if ((v & STATE) !== LIVE) return
      if (compareExchange(this.words, base + ADM, v, (v + ONE_EPOCH) | 0) === v) break
    }
    this.epochs.count(base)
    this.endNote(base)
  }

  /**
   * Ends the note, after a new epoch. The write is plain. A thread that still reads the note sees that its
   * epoch is old. The next epoch is given by a compare-exchange, which comes after this write.
   */
  endNote(base: number): void {
    write(this.words, base + AS_OF, NO_NOTE)
  }

  /** Whether `v`, which has no room, needs no sum: the key is blocked, or the last sum still holds. */
  protected isKnownFull(base: number, v: number, e: number, reading: Reading): boolean {
    // The read is plain: a note that is read late has another epoch or time, and costs a sum.
    const note = read(this.words, base + AS_OF)
    if (((note ^ v) & EPOCH) === 0 && (note & NOTED) !== 0 && this.holds(note, e, reading)) return true
    return this.isBlocked(base, v, reading.nowMs)
  }

  mostUsed(v: number): number {
    return v & COUNT
  }

  isEmpty(v: number): boolean {
    return (v & COUNT) === 0
  }

  mostCarried(v: number): number {
    return v & COUNT
  }

  promote(base: number, named: number, reading: Reading): boolean {
    this.enter(base, reading)
    return compareExchange(this.words, base + ADM, named, (named & ~STATE) | LIVE) === named
  }

  carryOver(base: number, payload: number, reading: Reading): void {
    this.enter(base, reading)
    if (payload > 0) this.carry(base, payload, reading)
  }

  /**
   * The note ends. Otherwise a note of an earlier sum could match again after the block is over, once the epoch
   * has wrapped.
   */
  onBlock(base: number): void {
    this.endNote(base)
  }

  inherited(v: number, isExpired: boolean): number {
    return isExpired ? 0 : Math.min(v & COUNT, MAX_TOTAL)
  }

  /** A sum ends it. The tick and the counts are read after v, as in `decide`. */
  endBlock(base: number, v: number, reading: Reading): boolean {
    return this.resum(base, v, read(this.words, base + TICK), reading)
  }

  /** The total must not be below the counts: units that an earlier window counted may not be in it. */
  carry(base: number, units: number, reading: Reading): Charged | undefined {
    const carried = this.adjustments.carry(base, units, reading)
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(this.words, base + ADM)
      if ((v & COUNT) >= units || (v & STATE) !== LIVE) return carried
      const next = ((v & ~COUNT) + ONE_EPOCH) | Math.min(units, MAX_TOTAL)
      if (compareExchange(this.words, base + ADM, v, next) !== v) continue
      this.epochs.count(base)
      return carried
    }
  }

  /** The total may have old counts, too; the cell what another thread carries. */
  carriedPayload(base: number, units: number, reading: Reading): number {
    return Math.min(units, this.estimates.usedInLast(base, reading, reading.ticks.windowMs))
  }

  takeBack(base: number, carried: Charged): void {
    this.adjustments.undo(base, carried)
  }

  /** Sums the window that ends in tick e, and writes the note. Returns false if `v` has changed. */
  resum(base: number, v: number, e: number, reading: Reading): boolean {
    const sum = this.sum(base, e, reading)
    if (sum < 0) return false
    const { noteTime } = this
    const next = ((v & ~COUNT) + ONE_EPOCH) | sum | 0
    if (compareExchange(this.words, base + ADM, v, next) !== v) return false
    write(this.words, base + AS_OF, (next & EPOCH) | NOTED | noteTime)
    return true
  }

  /** @see Cells.isBlocked */
  isBlocked(base: number, v: number, nowMs: number): boolean {
    return (v & COUNT) === BLOCKED && this.blockedMs(base, nowMs) > 0
  }
}
