import type { Reading } from '../core/reading.js'
import { SIXTEENTHS, type Ticks } from '../core/ticks.js'
import { ADM, BLOCKED, COUNT, TICK, UNTIL } from '../memory/layout.js'
import { load, read } from '../memory/words.js'
import type { SlidingWindow } from './sliding-window.js'

/** A cell's buckets as seen from a reading. */
interface View {
  /** The newest tick that they have seen, not wrapped, and as its word. */
  readonly newest: number
  readonly word: number
  /** How many ticks up to that one are in the window. */
  readonly length: number
  /** Where the window ends, in granules. */
  readonly now: number
}

/**
 * What a cell will do if it is left alone, worked out from its buckets and never written to it: each figure a snapshot
 * that other threads may overtake. Ticks here are not wrapped. Figures are whole milliseconds from the reading: that many
 * after it the figure is so, and one less it is not, by any clock, of fractional milliseconds too.
 */
export class Estimates {
  readonly #window: SlidingWindow
  readonly #ticks: Ticks
  readonly #smooth: boolean
  /** When charges were gone that were asked about last: all of a tick have one end. */
  readonly #lastEnd = { position: Number.NaN, nowMs: 0, ms: 0 }

  constructor(window: SlidingWindow, ticks: Ticks, smooth: boolean) {
    this.#window = window
    this.#ticks = ticks
    this.#smooth = smooth
  }

  /** Units that count against a decision at the reading. */
  used(base: number, reading: Reading): number {
    return this.#inOneTick(base, reading, (view) => this.#usedIn(base, view))
  }

  /** Units charged in the last `lastMs` (at most the window): every granule that overlaps them, counted whole. */
  usedInLast(base: number, reading: Reading, lastMs: number): number {
    const from = Math.floor(this.#ticks.position(reading.nowMs - lastMs))
    return this.#inOneTick(base, reading, ({ newest, word, length }) =>
      this.#sum(base, word, Math.min(length, newest - from + 1)),
    )
  }

  /** Until `cost` would be admitted; 0 where it would be now. `cost` is at most `limit`. */
  untilAdmitted(base: number, cost: number, limit: number, reading: Reading): number {
    return Math.max(this.untilFits(base, cost, limit, reading), this.untilUnblocked(base, reading))
  }

  /** The same, of counts alone: a block is not looked at. */
  untilFits(base: number, cost: number, limit: number, reading: Reading): number {
    return this.#inOneTick(base, reading, (view) => {
      const room = limit - cost
      if (this.#usedIn(base, view) <= room) return 0
      // What has to leave is counted whole: by the time that a bucket leaves, all before it have.
      const { newest, word, length, now } = view
      const age = this.#lastToLeave(base, word, length, room)
      if (age < 0) return 0 // it has been taken out meanwhile
      const count = this.#window.ring.countAt(base, word, age)
      const position = this.#leaves(newest - age, count, room - this.#sum(base, word, age))
      return Math.max(0, this.#ticks.untilPosition(reading.nowMs, Math.max(position, now)))
    })
  }

  /** Until nothing counts any more; 0 where nothing does. A block is not looked at. */
  untilEmpty(base: number, reading: Reading): number {
    return this.#inOneTick(base, reading, ({ newest, word, length }) => {
      const age = this.#lastToLeave(base, word, length, 0)
      if (age < 0) return 0
      return Math.max(0, this.#ticks.untilPosition(reading.nowMs, newest - age + this.#window.ring.size))
    })
  }

  /** Units that count just after a charge in this tick, the cell's. */
  usedAtCharge(base: number, tick: number, reading: Reading): number {
    const { ring } = this.#window
    return this.#smooth || this.#window.hasNodes ? this.used(base, reading) : ring.sum(base, tick, 0)
  }

  /** Until what was charged in this tick, and before, does not count any more. */
  untilGone(tick: number, { nowMs, tick: readTick, absoluteTick }: Reading): number {
    const behind = this.#window.ring.distance(readTick, tick)
    const { modulus } = this.#ticks
    const age = behind > modulus / 2 ? behind - modulus : behind // below 0 where the cell stands ahead of the reading
    const position = absoluteTick - age + this.#window.ring.size
    const gone = this.#lastEnd
    if (position !== gone.position || nowMs !== gone.nowMs) {
      gone.position = position
      gone.nowMs = nowMs
      gone.ms = Math.max(0, this.#ticks.untilPosition(nowMs, position))
    }
    return gone.ms
  }

  /** Until a block ends: 0 where there is none, `Infinity` where it never does. */
  untilUnblocked(base: number, reading: Reading): number {
    const { words } = this.#window
    if ((load(words, base + ADM) & COUNT) !== BLOCKED) return 0
    return this.#window.until.wholeMs(load(words, base + UNTIL), reading.nowMs)
  }

  /** Until a new key may take the way of a table that is full, unless it is blocked then. */
  untilExpired(base: number, reading: Reading): number {
    const tick = this.#tickOf(base, reading)
    const isEmpty = (load(this.#window.words, base + ADM) & COUNT) === 0
    const free = tick + (isEmpty ? 1 : this.#window.ring.size + 1) // see Ring.isPast, Ring.isExpired
    return Math.max(0, this.#ticks.untilPosition(reading.nowMs, free))
  }

  /** What `see` makes of the cell, its tick being the same before and after: see `range-sum/fenwick.ts`. */
  #inOneTick<T>(base: number, reading: Reading, see: (view: View) => T): T {
    const { ring, words } = this.#window
    for (;;) {
      const word = load(words, base + TICK)
      const newest = reading.absoluteTick - ring.behind(base, word, reading)
      const whole = reading.absoluteTick
      // Where the window ends, in granules: at the cell's tick, if a clock that stepped back has not reached it.
      const now = newest > whole ? newest : whole + (this.#smooth ? reading.sixteenth / SIXTEENTHS : 0)
      const length = Math.max(0, newest - Math.max(newest, whole) + ring.size)
      const seen = see({ newest, word, length, now })
      if (read(words, base + TICK) === word) return seen
    }
  }

  /** What counts in the view's window, of its oldest bucket by the part inside. */
  #usedIn(base: number, { newest, word, length, now }: View): number {
    // As `Ring.sum` does: whole, the oldest bucket goes with its node.
    if (!this.#smooth || length === 0 || Number.isInteger(now)) return this.#sum(base, word, length)
    const oldest = this.#window.ring.countAt(base, word, length - 1)
    return this.#sum(base, word, length - 1) + this.#counting(newest - length + 1, oldest, now)
  }

  #sum(base: number, word: number, length: number): number {
    const { ring } = this.#window
    const slot = ring.slot(word)
    return length <= 0 ? 0 : ring.sums.sum(base, slot, ring.lap, length)
  }

  /**
   * How many ticks before the view's the last one is that has to leave for at most `room` to count; -1 where no more does. By
   * sums, which are what decides: where a thread died, a node may count more than the buckets in which `find` looks.
   */
  #lastToLeave(base: number, word: number, length: number, room: number): number {
    const { ring } = this.#window
    const whole = this.#sum(base, word, length)
    if (whole <= room) return -1
    const slot = ring.slot(word)
    const found = ring.sums.find(base, slot, ring.lap, length, whole - room - 1)
    const fits = (age: number) => this.#sum(base, word, age) <= room
    if (found >= 0 && fits(found) && !fits(found + 1)) return found
    let low = 0
    for (let high = length - 1; low < high; ) {
      const middle = Math.ceil((low + high) / 2)
      if (fits(middle)) low = middle
      else high = middle - 1
    }
    return low
  }

  /** The cell's tick, not wrapped: behind the reading's by less than the modulus, or standing ahead of it. */
  #tickOf(base: number, reading: Reading): number {
    const { ring, words } = this.#window
    const tick = load(words, base + TICK)
    return reading.absoluteTick - ring.behind(base, tick, reading)
  }

  /** What the oldest bucket counts when the window ends at `edge`: by its part inside, rounded up. */
  #counting(tick: number, count: number, edge: number): number {
    const age = edge - tick - this.#window.ring.size + 1 // granules of it that have left the window
    return age > 0 ? Math.ceil(count * (1 - age)) : count
  }

  /**
   * The first position at which a bucket counts at most `most`. Where that is no less than whole, it is a node that counts too much
   * (`#lastToLeave`): as soon as a part of its first bucket is out, the buckets below it are summed.
   */
  #leaves(tick: number, count: number, most: number): number {
    let sixteenths = SIXTEENTHS
    if (this.#smooth) {
      const inside = (SIXTEENTHS * most) / count
      sixteenths = count > most ? Math.min(SIXTEENTHS, Math.ceil(SIXTEENTHS - inside)) : 1
    }
    return tick + this.#window.ring.size - 1 + sixteenths / SIXTEENTHS
  }
}
