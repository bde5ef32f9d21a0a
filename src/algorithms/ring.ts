import type { Reading } from '../core/reading.js'
import { SIXTEENTHS } from '../core/ticks.js'
import {
  BUCKETS,
  CELL_RECORD,
  COUNT,
  HEADER,
  HI,
  LAP,
  LAPS,
  MAX_TOTAL,
  ONE_LAP,
  PER_SECOND,
  type Shape,
  TICK,
} from '../memory/layout.js'
import { compareExchange, load, read, store, type Words } from '../memory/words.js'
import { type Laps, type RangeSum, SWEEP_LAPS } from '../range-sum/range-sum.js'
import { rangeSumFor } from '../range-sum/select.js'

/** A cell's tick may be ahead of a reading by an hour, but by at least 2 and at most 2^20 ticks. */
export const MAX_AHEAD_MS = 3_600_000
export const MIN_AHEAD_TICKS = 2
export const MAX_AHEAD_TICKS = 2 ** 20
/** Where a cell's tick is, relative to a reading of the clock. */
type Side = typeof BEHIND | typeof STANDS_AHEAD | typeof FAR_AHEAD
const BEHIND = 0
/** The tick stays where it is until the clock reaches it. */
const STANDS_AHEAD = 1
/**
 * Further ahead than `MAX_AHEAD_MS` allows: the clock has stepped back for good, or the reading is very old.
 */
const FAR_AHEAD = 2
/** The largest value of NEWEST. */
export const MOST_NEWEST = 0xffffffff

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
export class Ring implements Laps {
  /** The granules that a window may overlap: n + 1. */
  readonly size: number
  /** The buckets of the ring: n + 1, or more if there are nodes. */
  readonly slots: number
  readonly sums: RangeSum
  readonly #words: Words
  readonly #modulus: number
  readonly #aheadTicks: number
  readonly #granuleMs: number
  readonly #originMs: number
  readonly #record: number
  #locatedTick = 0
  #slot = 0
  #lap = 0

  constructor(words: Words, shape: Shape, originMs: number) {
    this.#words = words
    this.size = shape.buckets + 1
    this.slots = shape.ring
    this.sums = rangeSumFor(words, shape, this)
    this.#modulus = shape.modulus
    this.#granuleMs = shape.windowMs / shape.buckets
    this.#originMs = originMs
    this.#record = shape.record
    const aheadTicks = Math.max(Math.ceil(MAX_AHEAD_MS / this.#granuleMs), MIN_AHEAD_TICKS)
    this.#aheadTicks = Math.min(aheadTicks, MAX_AHEAD_TICKS)
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

  /** The number of ticks from `earlier` to `tick`, 0 to modulus - 1. */
  distance(tick: number, earlier: number): number {
    const distance = (tick >>> 0) - (earlier >>> 0)
    return distance < 0 ? distance + this.#modulus : distance
  }

  /** The tick that is `ticks` after `tick`, as a word. */
  after(tick: number, ticks: number): number {
    return (((((tick >>> 0) + ticks) % this.#modulus) + this.#modulus) % this.#modulus) | 0
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

  /**
   * Moves a cell's tick to the reading's, and sweeps. `observed` is the tick that a plain read returned. A
   * tick ahead of the reading stays (another thread's clock is ahead, or the clock stepped back). A move over
   * more than 64 laps has two hops, and each sweeps every slot. The tick between them is one whose laps no
   * old count bears.
   * @returns the number of ticks by which it moved the cell
   */
  advance(base: number, observed: number, reading: Reading): number {
    const reach = SWEEP_LAPS * this.slots
    const all = LAPS * this.slots
    let moved = 0
    let tick = observed
    let isFresh = false
    for (;;) {
      const goal = reading.tick
      const behind = this.distance(goal, tick)
      if (behind === 0) return moved
      const side = this.#sideOf(base, behind, reading)
      if (side === STANDS_AHEAD) return moved
      if (side === FAR_AHEAD && !isFresh) {
        reading.take() // the clock may not have stepped back: this thread may have been stopped for an hour
        isFresh = true
        continue
      }
      const hop = behind <= reach ? behind : reach + all * Math.floor((behind - reach) / all)
      const next = hop === behind ? goal : this.after(tick, hop)
      this.#raiseNewest(reading)
      const found = compareExchange(this.#words, base + TICK, tick, next)
      if (found !== tick) {
        tick = found
        isFresh = false
        continue
      }
      this.sums.sweep(base, tick, hop, next)
      moved += hop
      tick = next
    }
  }

  /** Stores the first tick of a way that was never used. No other thread uses it yet. */
  begin(base: number, reading: Reading): void {
    this.#raiseNewest(reading)
    store(this.#words, base + TICK, reading.tick)
  }

  /** The number of ticks from the cell's `tick` to the reading's. Negative if the cell's tick is ahead. */
  behind(base: number, tick: number, reading: Reading): number {
    const behind = this.distance(reading.tick, tick)
    return this.#sideOf(base, behind, reading) === STANDS_AHEAD ? behind - this.#modulus : behind
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

  /**
   * Where the cell's tick is. It seems to be `modulus - behind` ticks ahead of the reading. If that is ahead
   * of every reading ever taken, the cell has rested for almost the whole modulus instead (49 days, with
   * granules of a millisecond).
   */
  #sideOf(base: number, behind: number, reading: Reading): Side {
    if (behind <= this.#modulus / 2) return BEHIND
    const ahead = this.#modulus - behind
    load(this.#words, base + TICK) // acquires: NEWEST rose before this tick did, and is read after it
    // The tick of a newer record is ahead of every reading by this one. The name changed before the tick did.
    if ((load(this.#words, base + HI) & CELL_RECORD) !== this.#record) return STANDS_AHEAD
    const word = load(this.#words, HEADER.NEWEST) >>> 0
    const newest = (word + 2) * (1000 / PER_SECOND)
    // 8 years after the origin NEWEST stays at its largest value and proves nothing. Then the tick stays.
    const wasRead = (reading.absoluteTick + ahead) * this.#granuleMs - this.#originMs < newest
    if (!wasRead && word !== MOST_NEWEST) return BEHIND
    return ahead <= this.#aheadTicks ? STANDS_AHEAD : FAR_AHEAD
  }

  #raiseNewest(reading: Reading): void {
    const since = Math.floor(((reading.nowMs - this.#originMs) * PER_SECOND) / 1000)
    const newest = Math.min(since, MOST_NEWEST)
    // The read is plain: a late value is lower, and costs a compare-exchange.
    for (let current = read(this.#words, HEADER.NEWEST); current >>> 0 < newest; ) {
      const found = compareExchange(this.#words, HEADER.NEWEST, current, newest | 0)
      if (found === current) return
      current = found
    }
  }

  /** @see Laps.lapOf */
  lapOf(slot: number, tick: number): number {
    return slot <= this.slot(tick) ? this.#lap : (this.#lap - ONE_LAP) & LAP
  }
}
