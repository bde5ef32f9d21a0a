/**
 * The log of a key's last units: exact to the millisecond, for small limits. It is the protocol of
 * `sliding-window.ts`, with *entries* in place of buckets: what is not said here is the same.
 *
 * **Entries.** A cell has as many entries as the limit. Each is the date of one unit, so a cost of k takes k of
 * them. Ticks are milliseconds. A unit is dated by the first tick at or after its reading, and counts for n ticks
 * from there: it never leaves the window too early. An entry has the low 28 bits of a tick. Its tick is understood
 * from the cell's: it is out, or in the window, or up to 2^22 ticks ahead of a thread that stalls.
 *
 * **A charge** of tick e takes entries that are free in e: their units are out. It begins at HINT, where the oldest
 * are. Between the read of an entry and its CAS the thread reads the cell's tick: if that is far past e, an entry
 * that seems to be out could be newer than e instead. Fewer free entries than the cost: they are given back.
 * Two threads with costs above 1 may then both be refused, although one of them would fit.
 *
 * **Versions.** Every write of an entry gives it another version. So a thread takes its charge out by a CAS of
 * exactly the word that it wrote, and leaves it if a refund by key has taken it meanwhile: this refund is lost, which
 * errs to refusal. Versions have 3 bits: a thread that stops for eight changes of one entry, all of the same tick,
 * can't notice them.
 *
 * **Giving back** a decision later finds its entries by their date, from the place of the first one on. Entries of
 * one date are alike, so those of another decision will do, as long as its own count, too. (If that one is then not
 * admitted, a unit stays for a window. With a cost of 1 the first place is the decision's own.) But a refund by key may have taken them. So a refund finds
 * its entries, then raises REFUNDS, then takes out exactly the words that it found. A charge reads REFUNDS before it
 * writes: a refund that finds it raises REFUNDS later. Who gives back collects the entries, then loads REFUNDS, then
 * takes out exactly the words collected. If REFUNDS has not changed since the charge, no refund had taken it by then.
 *
 * **A sum** counts the entries in the window, and notes the tick at which the first of them leaves. Until then a
 * refusal needs no other sum.
 *
 * **A penalty** without room gives the oldest entries its own date. A log of the newest units decides as one of all
 * would.
 *
 * **A sweep** clears what is out each 2^25 ticks (9 hours, at a millisecond), long before its tick could be taken for
 * one of the next 2^28. A cell that has rested for a month is cleared when its tick moves: 2^32 ticks after a unit,
 * 50 days, it would count again. PERIOD tells.
 *
 * Source: the sliding log of rate limiting, as in many descriptions; exact, at the memory of its limit.
 */
import type { Reading } from '../../core/reading.js'
import type { Ticks } from '../../core/ticks.js'
import { ADM, type Shape, TICK, TIME } from '../../memory/layout.js'
import { read, store, type Words, write } from '../../memory/words.js'
import { CHARGED, LATE, OVERFLOWN } from '../../range-sum/range-sum.js'
import { UNDECIDED } from '../algorithm.js'
import { SummedCells } from '../window/summed-cells.js'
import { CellTime } from '../word/cell-time.js'
import { LogAdjustments } from './log-adjustments.js'
import { LogEntries } from './log-entries.js'
import { ENTRIES, HINT, PERIOD, PERIOD_MS, periodOf } from './log-entry.js'
import { LogEstimates } from './log-estimates.js'

/** A note has 23 bits of a tick. A step is half of that. */
export const LOG_STEP_BITS = 22

/** @see Algorithm */
export class SlidingLog extends SummedCells {
  readonly estimates: LogEstimates
  readonly adjustments: LogAdjustments
  readonly hasWholeMs = false
  readonly entries: LogEntries
  readonly time: CellTime
  /** The ticks of the window. */
  readonly windowTicks: number
  /** Whether the window is shorter than a period. Otherwise its ticks are longer, and come round later. */
  readonly #hasPeriods: boolean
  protected readonly stepBits = LOG_STEP_BITS
  protected noteTime = 0
  stamp = 0

  constructor(words: Words, shape: Shape, originMs: number, ticks: Ticks) {
    super(words, shape, originMs)
    this.time = new CellTime(words, shape, originMs)
    this.entries = new LogEntries(words, shape, shape.wayWords - ENTRIES, this.time)
    this.windowTicks = shape.buckets
    this.#hasPeriods = 2 * shape.windowMs < PERIOD_MS
    this.estimates = new LogEstimates(this, ticks)
    this.adjustments = new LogAdjustments(this)
  }

  touch(way: number): number {
    const base = this.base(way)
    return read(this.words, base + ADM) | read(this.words, base + HINT)
  }

  attempt(): typeof UNDECIDED {
    return UNDECIDED
  }

  protected move(base: number, tick: number, reading: Reading): number {
    if (this.#hasPeriods) this.entries.beginPeriod(base, tick, reading.nowMs)
    return this.time.advance(base, tick, reading, this.entries)
  }

  /** Whether nothing has moved the cell's tick, another one, for a period: nothing counts. */
  hasRested(base: number, tick: number, reading: Reading): boolean {
    if (!this.#hasPeriods || tick === reading.tick) return false
    return periodOf(reading.nowMs) - read(this.words, base + PERIOD) > 1
  }

  /** The date of a unit that is charged in the cell's tick e at this reading. */
  dateOf(e: number, reading: Reading): number {
    if (e !== reading.tick) return e
    const position = reading.ticks.position(reading.nowMs)
    return position === Math.floor(position) ? e : this.time.after(e, 1)
  }

  protected charge(base: number, e: number, cost: number, reading: Reading): number {
    const date = this.dateOf(e, reading)
    const refunds = this.entries.refunds(base) // before the charge: a later refund may take it
    const free = this.entries.chargeFree(base, e, cost, date)
    if (free === cost) {
      this.stamp = this.entries.receipt(base, refunds, date !== e)
      return CHARGED
    }
    this.undo(base)
    return free < 0 ? LATE : OVERFLOWN
  }

  undo(base: number): boolean {
    const taken = this.entries.undo()
    if (taken > 0) this.bumpEpoch(base)
    return taken > 0
  }

  /**
   * It stays also if another thread has carried the units, too: for want of room, each may have given entries of
   * the other one its own date. A log has no more entries than its limit.
   */
  override carry(base: number, units: number, reading: Reading): undefined {
    super.carry(base, units, reading)
  }

  isExpired(base: number, tick: number, reading: Reading): boolean {
    // A unit is dated up to a tick later, and the clocks of other threads may be a granule behind.
    return this.time.behind(base, tick, reading) > this.windowTicks + 1
  }

  isPast(base: number, tick: number, reading: Reading): boolean {
    return this.time.behind(base, tick, reading) > 0
  }

  begin(base: number, reading: Reading): void {
    this.time.raiseNewest(reading)
    write(this.words, base + PERIOD, periodOf(reading.nowMs))
    store(this.words, base + TICK, reading.tick)
  }

  protected sum(base: number, e: number): number {
    const units = this.entries.sum(base, e)
    this.noteTime = (e + Math.min(this.entries.leavesIn, 2 ** LOG_STEP_BITS - 1)) & TIME
    return units
  }

  /** No unit has left by tick e. */
  protected holds(note: number, e: number): boolean {
    const left = (note - e) & TIME
    return left > 0 && left < 2 ** LOG_STEP_BITS
  }
}
