import type { Reading } from '../../core/reading.js'
import { SIXTEENTHS } from '../../core/ticks.js'
import { BUCKETS, COUNT, LAP, LAPS, MAX_TOTAL, ONE_LAP, type Shape, TICK } from '../../memory/layout.js'
import { read, store, type Words } from '../../memory/words.js'
import { type Laps, type RangeSum, SWEEP_LAPS } from '../../range-sum/range-sum.js'
import { rangeSumFor } from '../../range-sum/select.js'
import { CellTime, type Hops } from '../word/cell-time.js'

/**
 * The ring of buckets of a cell, and its tick.
 *
 *      slot     0    1    2    3    4         n = 4 granules, 5 slots
 *             +----+----+----+----+----+
 *      tick   | 10 | 11 | 12 |  8 |  9 |      the cell's tick is 12: slots up to its own have its lap,
 *             +----+----+----+----+----+      those after it have the lap before
 *      lap       2    2    2    1    1
 *
 * When the tick moves on, no bucket is cleared. A bucket with neither of these two laps counts nothing. This
 * needs no work when time passes, but it needs the sweep: laps have 8 bits, so a count that rested for 256
 * laps would count again.
 */
export class Ring implements Laps, Hops {
  /** The granules that a window may overlap: n + 1. */
  readonly size: number
  /** The buckets of the ring: n + 1, or more if there are nodes. */
  readonly slots: number
  readonly sums: RangeSum
  readonly #words: Words
  readonly #time: CellTime
  #locatedTick = 0
  #slot = 0
  #lap = 0

  constructor(words: Words, shape: Shape, originMs: number) {
    this.#words = words
    this.size = shape.buckets + 1
    this.slots = shape.ring
    this.sums = rangeSumFor(words, shape, this)
    this.#time = new CellTime(words, shape, originMs)
  }

  /** The slot of a tick. `lap` is then its lap. Keeps the last result, as most calls repeat the last tick. */
  slot(tick: number): number {
    if (tick !== this.#locatedTick) {
      this.#locatedTick = tick
      const lap = Math.floor((tick >>> 0) / this.slots)
      this.#slot = (tick >>> 0) - lap * this.slots
      this.#lap = lap << 24
    }
    return this.#slot
  }

  /** The lap of the last tick given to `slot`, as a bucket bears it. */
  get lap(): number {
    return this.#lap
  }

  /** @see CellTime.distance */
  distance(tick: number, earlier: number): number {
    return this.#time.distance(tick, earlier)
  }

  /** @see CellTime.after */
  after(tick: number, ticks: number): number {
    return this.#time.after(tick, ticks)
  }

  /**
   * The units in the window that ends in `tick`, at most MAX_TOTAL. Of the oldest bucket, `sixteenth`
   * sixteenths have left the window. The rest counts, rounded up.
   */
  sum(base: number, tick: number, sixteenth: number): number {
    const slot = this.slot(tick)
    const units = this.sums.sum(base, slot, this.#lap, sixteenth > 0 ? this.size - 1 : this.size)
    if (sixteenth === 0) return Math.min(units, MAX_TOTAL)
    const oldest = this.countAt(base, tick, this.size - 1)
    return Math.min(units + Math.ceil((oldest * (SIXTEENTHS - sixteenth)) / SIXTEENTHS), MAX_TOTAL)
  }

  /** The count of the bucket that is `age` ticks before `tick`. */
  countAt(base: number, tick: number, age: number): number {
    const at = this.slot(tick) - age
    const b = read(this.#words, base + BUCKETS + (at < 0 ? at + this.slots : at))
    return (b & LAP) === (at < 0 ? (this.#lap - ONE_LAP) & LAP : this.#lap) ? b & COUNT : 0
  }

  /** Moves a cell's tick to the reading's, and sweeps. @see CellTime.advance */
  advance(base: number, observed: number, reading: Reading): number {
    return this.#time.advance(base, observed, reading, this)
  }

  /**
   * A move over more than 64 laps has two hops, and each sweeps every slot. The tick between them is one whose
   * laps no old count bears.
   */
  hop(behind: number): number {
    const reach = SWEEP_LAPS * this.slots
    const all = LAPS * this.slots
    return behind <= reach ? behind : reach + all * Math.floor((behind - reach) / all)
  }

  sweep(base: number, from: number, hop: number, to: number): void {
    this.sums.sweep(base, from, hop, to)
  }

  /** Stores the first tick of a way that was never used. No other thread uses it yet. */
  begin(base: number, reading: Reading): void {
    this.#time.raiseNewest(reading)
    store(this.#words, base + TICK, reading.tick)
  }

  /** @see CellTime.behind */
  behind(base: number, tick: number, reading: Reading): number {
    return this.#time.behind(base, tick, reading)
  }

  /**
   * Whether all counts of a cell with this `tick` have left the window of every thread. Other threads' clocks
   * may be a granule behind the reading, so a granule more than the window must have passed.
   */
  isExpired(base: number, tick: number, reading: Reading): boolean {
    return this.behind(base, tick, reading) > this.size
  }

  /**
   * Whether `tick` is over by every thread's clock. Then no thread counts units that left the window ending
   * in `tick`.
   */
  isPast(base: number, tick: number, reading: Reading): boolean {
    return this.behind(base, tick, reading) > 0
  }

  /** @see Laps.lapOf */
  lapOf(slot: number, tick: number): number {
    return slot <= this.slot(tick) ? this.#lap : (this.#lap - ONE_LAP) & LAP
  }
}
