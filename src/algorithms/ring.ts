import type { Reading } from '../core/reading.js'
import { SIXTEENTHS } from '../core/ticks.js'
import {
  BUCKETS,
  COUNT,
  HEADER,
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

/** A cell's tick may stand ahead of a reading by an hour, but by at least 2 and at most 2^20 ticks. */
export const MAX_AHEAD_MS = 3_600_000
export const MIN_AHEAD_TICKS = 2
export const MAX_AHEAD_TICKS = 2 ** 20
/** Where a cell's tick is, seen from a reading of the clock. */
type Side = typeof BEHIND | typeof STANDS_AHEAD | typeof FAR_AHEAD
const BEHIND = 0
/** Until the clock is there. */
const STANDS_AHEAD = 1
/** By more than is believed: the clock has stepped back for good, or the reading is very old. */
const FAR_AHEAD = 2
/** NEWEST stops here. */
export const MOST_NEWEST = 0xffffffff

/**
 * The ring of buckets of a cell, and its tick.
 *
 *      slot     0    1    2    3    4         n = 4 granules, 5 slots
 *             +----+----+----+----+----+
 *      tick   | 10 | 11 | 12 |  8 |  9 |      the cell's tick is 12: slots up to its own are of its lap,
 *             +----+----+----+----+----+      those behind it of the lap before
 *      lap       2    2    2    1    1
 *
 * A tick that moves on gives no slot back and clears none: a bucket whose lap is neither of the two counts nothing.
 * That wastes nothing but needs the sweep: laps have 8 bits, so a count that rested for 256 laps would count again.
 */
export class Ring implements Laps {
  /** The granules that a window may reach into: n, and the one under way. */
  readonly size: number
  /** The buckets there are: as many, or some more below nodes. */
  readonly slots: number
  readonly sums: RangeSum
  readonly #words: Words
  readonly #modulus: number
  readonly #aheadTicks: number
  readonly #granuleMs: number
  readonly #originMs: number
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
    const aheadTicks = Math.max(Math.ceil(MAX_AHEAD_MS / this.#granuleMs), MIN_AHEAD_TICKS)
    this.#aheadTicks = Math.min(aheadTicks, MAX_AHEAD_TICKS)
  }

  /** The slot of a tick; `lap` then says its lap. Most calls ask for the tick of the call before. */
  slot(tick: number): number {
    if (tick !== this.#locatedTick) {
      this.#locatedTick = tick
      const lap = Math.floor((tick >>> 0) / this.slots)
      this.#slot = (tick >>> 0) - lap * this.slots
      this.#lap = lap << 24
    }
    return this.#slot
  }

  /** The lap of the tick last given to `slot`, as it stands in a bucket. */
  get lap(): number {
    return this.#lap
  }

  /** How many ticks `tick` is after `earlier`, 0 to modulus - 1. */
  distance(tick: number, earlier: number): number {
    const distance = (tick >>> 0) - (earlier >>> 0)
    return distance < 0 ? distance + this.#modulus : distance
  }

  /** A tick so many ticks on, as its word. */
  after(tick: number, ticks: number): number {
    return (((((tick >>> 0) + ticks) % this.#modulus) + this.#modulus) % this.#modulus) | 0
  }

  /**
   * What the buckets of the window that ends in `tick` have counted: those that bear their own lap; the oldest one only
   * by the sixteenths of it that are inside, rounded up. At most MAX_TOTAL.
   */
  sum(base: number, tick: number, sixteenth: number): number {
    const slot = this.slot(tick)
    const whole = this.sums.sum(base, slot, this.#lap, sixteenth > 0 ? this.size - 1 : this.size)
    if (sixteenth === 0) return Math.min(whole, MAX_TOTAL)
    const oldest = this.countAt(base, tick, this.size - 1)
    return Math.min(whole + Math.ceil((oldest * (SIXTEENTHS - sixteenth)) / SIXTEENTHS), MAX_TOTAL)
  }

  /** What the bucket of the tick `age` before `tick` has counted. */
  countAt(base: number, tick: number, age: number): number {
    const at = this.slot(tick) - age
    const b = read(this.#words, base + BUCKETS + (at < 0 ? at + this.slots : at))
    return (b & LAP) === (at < 0 ? (this.#lap - ONE_LAP) & LAP : this.#lap) ? b & COUNT : 0
  }

  /**
   * Moves a cell's tick on to the reading's and sweeps what it passed; `seen` is what a plain read found there. A tick
   * ahead of the reading (another thread's clock, or a clock that stepped back) stands. A move over more than 64 laps
   * goes in hops, each of which sweeps every slot: by way of a tick whose laps no leftover bears.
   * @returns how many ticks it moved
   */
  advance(base: number, seen: number, reading: Reading): number {
    const reach = SWEEP_LAPS * this.slots
    const all = LAPS * this.slots
    let moved = 0
    let tick = seen
    let isFresh = false
    for (;;) {
      const goal = reading.tick
      const behind = this.distance(goal, tick)
      if (behind === 0) return moved
      const side = this.#sideOf(base, behind, reading)
      if (side === STANDS_AHEAD) return moved
      if (side === FAR_AHEAD && !isFresh) {
        reading.take() // perhaps it is not the clock that stepped back, but this thread that was stopped for an hour
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

  /** The first tick of a way that nobody ever used: no other thread knows it yet. */
  begin(base: number, reading: Reading): void {
    this.#raiseNewest(reading)
    store(this.#words, base + TICK, reading.tick)
  }

  /** How many ticks the reading is after the cell's `tick`; below 0 where the cell's stands ahead of it. */
  behind(base: number, tick: number, reading: Reading): number {
    const behind = this.distance(reading.tick, tick)
    return this.#sideOf(base, behind, reading) === STANDS_AHEAD ? behind - this.#modulus : behind
  }

  /**
   * Whether the cell's `tick` has left the window of every thread: their clocks may be a granule behind the reading, so a
   * granule more than the window must have passed.
   */
  isExpired(base: number, tick: number, reading: Reading): boolean {
    return this.behind(base, tick, reading) > this.size
  }

  /** Whether the cell's `tick` is past for every thread, so that none counts what has left the window that ends in it. */
  isPast(base: number, tick: number, reading: Reading): boolean {
    return this.behind(base, tick, reading) > 0
  }

  /**
   * On which side of the reading the cell's tick is, which seems to be `modulus - behind` ahead of it. It is not where it
   * would be ahead of every reading ever taken: then it is one that rested for nearly the whole modulus (49 days, of
   * milliseconds).
   */
  #sideOf(base: number, behind: number, reading: Reading): Side {
    if (behind <= this.#modulus / 2) return BEHIND
    const ahead = this.#modulus - behind
    load(this.#words, base + TICK) // acquire: NEWEST rose before this tick did, and is read after it
    const word = load(this.#words, HEADER.NEWEST) >>> 0
    const newest = (word + 2) * (1000 / PER_SECOND)
    // Where a clock is 8 years past the origin, NEWEST says nothing: err towards standing still.
    const wasRead = (reading.absoluteTick + ahead) * this.#granuleMs - this.#originMs < newest
    if (!wasRead && word !== MOST_NEWEST) return BEHIND
    return ahead <= this.#aheadTicks ? STANDS_AHEAD : FAR_AHEAD
  }

  #raiseNewest(reading: Reading): void {
    const since = Math.floor(((reading.nowMs - this.#originMs) * PER_SECOND) / 1000)
    const newest = Math.min(since, MOST_NEWEST)
    // Plain: a late value is a lower one, and costs a compare-exchange.
    for (let seen = read(this.#words, HEADER.NEWEST); seen >>> 0 < newest; ) {
      const found = compareExchange(this.#words, HEADER.NEWEST, seen, newest | 0)
      if (found === seen) return
      seen = found
    }
  }

  /** @see Laps.lapOf */
  lapOf(slot: number, tick: number): number {
    return slot <= this.slot(tick) ? this.#lap : (this.#lap - ONE_LAP) & LAP
  }
}
