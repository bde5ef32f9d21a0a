import type { Reading } from '../core/reading.js'
import type { Ticks } from '../core/ticks.js'
import { ADM, BLOCKED, BUCKETS, COUNT, LAP, TICK } from '../memory/layout.js'
import { load, read } from '../memory/words.js'
import { ONE_LAP } from './ring.js'
import type { SlidingWindow } from './sliding-window.js'

/**
 * What a cell will do if it is left alone, worked out from its buckets and never written to it: each figure a snapshot
 * that other threads may overtake. Ticks here are not wrapped; moments are in milliseconds of the clock, from `nowMs`.
 */
export class Forecast {
  readonly #window: SlidingWindow
  readonly #ticks: Ticks
  readonly #smooth: boolean

  constructor(window: SlidingWindow, ticks: Ticks, smooth: boolean) {
    this.#window = window
    this.#ticks = ticks
    this.#smooth = smooth
  }

  /** Units that count against a decision at the reading. */
  used(base: number, reading: Reading): number {
    const now = this.#edgeOf(reading)
    let used = 0
    this.#eachBucket(base, reading, (tick, count) => {
      used += this.#counting(tick, count, now)
    })
    return used
  }

  /** Units charged in the last `lastMs` (at most the window): every granule that overlaps them, counted whole. */
  usedInLast(base: number, reading: Reading, lastMs: number): number {
    const from = Math.floor(this.#ticks.position(reading.nowMs - lastMs))
    let used = 0
    this.#eachBucket(base, reading, (tick, count) => {
      if (tick >= from) used += count
    })
    return used
  }

  /**
   * Whole milliseconds from `fromMs` to the first moment, from the reading on, at which `cost` would be admitted; the
   * reading's own where it would be now. `cost` is at most `limit`.
   */
  untilAdmitted(base: number, cost: number, limit: number, reading: Reading, fromMs: number): number {
    const buckets: [tick: number, count: number][] = []
    let left = 0
    this.#eachBucket(base, reading, (tick, count) => {
      buckets.push([tick, count])
      left += count
    })
    const room = limit - cost
    const now = this.#edgeOf(reading)
    let position = now
    for (const [tick, count] of buckets) {
      // `left` counts this bucket and all newer ones whole; older ones are gone by then. Only the oldest is partly out now.
      if (left - count + this.#counting(tick, count, now) <= room) break
      left -= count
      position = this.#leaves(tick, count, room - left)
    }
    const free = position > now ? this.#ticks.untilPosition(fromMs, position) : reading.nowMs - fromMs
    return Math.max(Math.ceil(free), this.untilUnblocked(base, reading, fromMs))
  }

  /** Whole milliseconds from `fromMs` until nothing counts any more; 0 or less where nothing does. */
  untilReset(base: number, reading: Reading, fromMs: number): number {
    let newest = Number.NEGATIVE_INFINITY
    this.#eachBucket(base, reading, (tick) => {
      newest = tick
    })
    const reset = newest + this.#window.ring.size
    const free = Number.isFinite(newest) ? this.#ticks.untilPosition(fromMs, reset) : 0
    return Math.max(free, this.untilUnblocked(base, reading, fromMs))
  }

  /** Whole milliseconds from `fromMs` until a block ends: 0 where there is none, `Infinity` where it never does. */
  untilUnblocked(base: number, reading: Reading, fromMs: number): number {
    if ((load(this.#window.words, base + ADM) & COUNT) !== BLOCKED) return 0
    const blockedMs = this.#window.blockedMs(base, reading.nowMs)
    return blockedMs <= 0 ? 0 : Math.ceil(blockedMs + reading.nowMs - fromMs)
  }

  /** Whole milliseconds from `fromMs` until a new key may take the way of a table that is full. */
  untilFree(base: number, reading: Reading, fromMs: number): number {
    const tick = this.#tickOf(base, reading)
    const isEmpty = (load(this.#window.words, base + ADM) & COUNT) === 0
    const free = tick + (isEmpty ? 1 : this.#window.ring.size + 1) // see Ring.isPast, Ring.isExpired
    return Math.max(this.#ticks.untilPosition(fromMs, free), this.untilUnblocked(base, reading, fromMs))
  }

  /**
   * Where the window ends, in granules. A cell whose tick stands ahead of that needs no other edge: all that is looked at
   * there (see `#eachBucket`) is inside.
   */
  #edgeOf(reading: Reading): number {
    return reading.absoluteTick + reading.sixteenth / 16
  }

  /** The cell's tick, not wrapped: behind the reading's by less than the modulus, or standing ahead of it. */
  #tickOf(base: number, reading: Reading): number {
    const { ring, words } = this.#window
    const tick = load(words, base + TICK)
    return reading.absoluteTick - ring.behind(base, tick, reading)
  }

  /** What a bucket of the window that ends at `edge` counts: the oldest by its part inside, rounded up. */
  #counting(tick: number, count: number, edge: number): number {
    const inside = this.#smooth ? Math.min(1, tick + this.#window.ring.size - edge) : 1
    return Math.ceil(count * inside)
  }

  /** The first position at which a bucket counts at most `most`, which is less than whole. */
  #leaves(tick: number, count: number, most: number): number {
    const sixteenths = this.#smooth ? Math.min(16, Math.ceil((16 * (count - most)) / count)) : 16
    return tick + this.#window.ring.size - 1 + sixteenths / 16
  }

  /** The buckets that count something in a window that ends at the reading or later, the oldest first. */
  #eachBucket(base: number, reading: Reading, visit: (tick: number, count: number) => void): void {
    const { ring, words } = this.#window
    const newest = this.#tickOf(base, reading)
    const oldest = Math.max(newest, reading.absoluteTick) - ring.size + 1
    let slot = ring.slot(this.#ticks.wrap(oldest) | 0)
    let { lap } = ring
    for (let tick = oldest; tick <= newest; tick++) {
      const b = read(words, base + BUCKETS + slot)
      if ((b & LAP) === lap && (b & COUNT) > 0) visit(tick, b & COUNT)
      if (++slot < ring.size) continue
      slot = 0
      lap = (lap + ONE_LAP) | 0 // on across the modulus, too: it is so many whole laps
    }
  }
}
