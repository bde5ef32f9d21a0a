import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { CELL_RECORD, HEADER, HI, PER_SECOND, type Shape, TICK } from '../../memory/layout.js'
import { compareExchange, load, read, type Words } from '../../memory/words.js'

/** A cell's tick may be ahead of a reading by an hour, but by at least 2 and at most 2^20 ticks. */
export const MAX_AHEAD_MS = 3_600_000
export const MIN_AHEAD_TICKS = 2
export const MAX_AHEAD_TICKS = 2 ** 20
/** Where a cell's tick is, relative to a reading of the clock. */
export type Side = typeof BEHIND | typeof STANDS_AHEAD | typeof FAR_AHEAD
const BEHIND = 0
/** The tick stays where it is until the clock reaches it. */
export const STANDS_AHEAD = 1
/**
 * Further ahead than `MAX_AHEAD_MS` allows: the clock has stepped back for good, or the reading is very old.
 */
export const FAR_AHEAD = 2
/** The largest value of NEWEST. */
export const MOST_NEWEST = 0xffffffff

/** How a cell's tick moves on: by how many ticks at once, and what happens to the old counts after that. */
export interface Hops {
  /** The ticks of the next hop of a cell that is `behind` ticks behind: at most as many. */
  hop(behind: number): number
  /** Called when a cell's tick has moved from `from` to `to` by a hop. */
  sweep(base: number, from: number, hop: number, to: number): void
}

/** Compares the tick of a cell, which wraps at the modulus of its shape, with a reading of the clock. */
export class CellTime {
  readonly #words: Words
  readonly #modulus: number
  readonly #aheadTicks: number
  readonly #granuleMs: number
  readonly #originMs: number
  readonly #record: number

  constructor(words: Words, shape: Shape, originMs: number) {
    this.#words = words
    this.#modulus = shape.modulus
    this.#granuleMs = shape.windowMs / shape.buckets
    this.#originMs = originMs
    this.#record = shape.record
    const aheadTicks = Math.max(Math.ceil(MAX_AHEAD_MS / this.#granuleMs), MIN_AHEAD_TICKS)
    this.#aheadTicks = Math.min(aheadTicks, MAX_AHEAD_TICKS)
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

  /** The number of ticks from the cell's `tick` to the reading's. Negative if the cell's tick is ahead. */
  behind(base: number, tick: number, reading: Reading): number {
    const behind = this.distance(reading.tick, tick)
    return this.sideOf(base, behind, reading) === STANDS_AHEAD ? behind - this.#modulus : behind
  }

  /**
   * Where the cell's tick is. It seems to be `modulus - behind` ticks ahead of the reading. If that is ahead
   * of every reading ever taken, the cell has rested for almost the whole modulus instead (49 days, with
   * granules of a millisecond).
   */
  sideOf(base: number, behind: number, reading: Reading): Side {
    if (behind <= this.#modulus / 2) return BEHIND
    const ahead = this.#modulus - behind
    load(this.#words, base + TICK) // acquires: NEWEST rose before this tick did, and is read after it
    // The tick of a newer record is ahead of every reading by this one. The name changed before the tick did.
    if ((load(this.#words, base + HI) & CELL_RECORD) !== this.#record) return STANDS_AHEAD
    const word = load(this.#words, HEADER.NEWEST) >>> 0
    const newest = (word + 2) * (1000 / PER_SECOND)
    // 8 years after the origin NEWEST stays at its largest value and proves nothing. Then the tick stays.
    const wasRead = reading.ticks.startMs(reading.absoluteTick + ahead) - this.#originMs < newest
    if (!wasRead && word !== MOST_NEWEST) return BEHIND
    return ahead <= this.#aheadTicks ? STANDS_AHEAD : FAR_AHEAD
  }

  /**
   * Moves a cell's tick to the reading's. `observed` is the tick that a plain read returned. A tick ahead of the
   * reading stays (another thread's clock is ahead, or the clock stepped back).
   * @returns the number of ticks by which it moved the cell
   */
  advance(base: number, observed: number, reading: Reading, hops: Hops): number {
    let moved = 0
    let tick = observed
    let isFresh = false
    for (let tries = 0; ; tries = again(tries)) {
      const goal = reading.tick
      const behind = this.distance(goal, tick)
      if (behind === 0) return moved
      const side = this.sideOf(base, behind, reading)
      if (side === STANDS_AHEAD) return moved
      if (side === FAR_AHEAD && !isFresh) {
        reading.take() // the clock may not have stepped back: this thread may have been stopped for an hour
        isFresh = true
        continue
      }
      const hop = hops.hop(behind)
      const next = hop === behind ? goal : this.after(tick, hop)
      this.raiseNewest(reading)
      const found = compareExchange(this.#words, base + TICK, tick, next)
      if (found !== tick) {
        tick = found
        isFresh = false
        continue
      }
      hops.sweep(base, tick, hop, next)
      moved += hop
      tick = next
    }
  }

  /** Before a cell's tick moves to the reading's. */
  raiseNewest(reading: Reading): void {
    const since = Math.floor(((reading.nowMs - this.#originMs) * PER_SECOND) / 1000)
    const newest = Math.min(since, MOST_NEWEST)
    // The read is plain: a late value is lower, and costs a compare-exchange.
    let current = read(this.#words, HEADER.NEWEST)
    for (let tries = 0; current >>> 0 < newest; tries = again(tries)) {
      const found = compareExchange(this.#words, HEADER.NEWEST, current, newest | 0)
      if (found === current) return
      current = found
    }
  }
}
