import type { Reading } from '../../core/reading.js'
import { SIXTEENTHS, type Ticks } from '../../core/ticks.js'
import { again } from '../../core/tries.js'
import { ADM, BLOCKED, COUNT, TICK, UNTIL } from '../../memory/layout.js'
import { load, read } from '../../memory/words.js'
import type { CellEstimates, Foresight } from '../algorithm.js'
import type { Ring } from './ring.js'
import type { SummedCells } from './summed-cells.js'

/** What a window of buckets has. */
interface Window extends Pick<SummedCells, 'words' | 'until'> {
  readonly ring: Ring
  readonly hasNodes: boolean
}

/** Which buckets of a cell count at a reading. */
interface View {
  /** The cell's tick, not wrapped, and as its word. */
  readonly newest: number
  readonly word: number
  /** The number of ticks in the window, up to the cell's tick. */
  readonly length: number
  /** The end of the window, in granules. */
  readonly now: number
}

/**
 * Computes what happens to a cell if no other operation changes it. It reads the buckets and never writes.
 * Each result is a snapshot, which other threads may make out of date. Ticks are not wrapped here. A time is
 * in whole milliseconds after the reading. It is exact: one millisecond less is too early, also with a clock
 * of fractional milliseconds.
 */
export class Estimates implements CellEstimates {
  readonly runsOff = false
  readonly #window: Window
  readonly #ticks: Ticks
  readonly #smooth: boolean
  readonly #foresight = { used: 0, fitsMs: 0, emptyMs: 0 }
  /** The last result of `untilGone`: all charges of a tick end at the same time. */
  readonly #lastEnd = { position: Number.NaN, nowMs: 0, ms: 0 }

  constructor(window: Window, ticks: Ticks, smooth: boolean) {
    this.#window = window
    this.#ticks = ticks
    this.#smooth = smooth
  }

  /** Units that count against a decision at the reading. */
  used(base: number, reading: Reading): number {
    return this.#inOneTick(base, reading, (view) => this.#usedIn(base, view))
  }

  /** Units charged in the last `lastMs`, at most the window. A granule that overlaps it counts whole. */
  usedInLast(base: number, reading: Reading, lastMs: number): number {
    const from = Math.floor(this.#ticks.position(reading.nowMs - lastMs))
    return this.#inOneTick(base, reading, ({ newest, word, length }) =>
      this.#sum(base, word, Math.min(length, newest - from + 1)),
    )
  }

  /** Milliseconds until `cost`, at most `limit`, would be admitted; 0 if it would be now. */
  untilAdmitted(base: number, cost: number, limit: number, reading: Reading): number {
    return Math.max(this.untilFits(base, cost, limit, reading), this.untilUnblocked(base, reading))
  }

  /** The same if a block is ignored. */
  untilFits(base: number, cost: number, limit: number, reading: Reading): number {
    return this.#inOneTick(base, reading, (view) =>
      this.#untilRoom(base, view, this.#usedIn(base, view), limit - cost, reading),
    )
  }

  /** Milliseconds until nothing counts any more, 0 if nothing does. A block is ignored. */
  untilEmpty(base: number, reading: Reading): number {
    return this.#inOneTick(base, reading, (view) =>
      this.#untilEmptyIn(base, view, this.#wholeIn(base, view), reading),
    )
  }

  foresee(base: number, room: number, reading: Reading): Foresight {
    const foresight = this.#foresight
    this.#inOneTick(base, reading, (view) => {
      const used = this.#usedIn(base, view)
      const whole = this.#smooth ? this.#wholeIn(base, view) : used
      foresight.used = used
      foresight.fitsMs = this.#untilRoom(base, view, used, room, reading, whole)
      foresight.emptyMs = this.#untilEmptyIn(base, view, whole, reading)
    })
    return foresight
  }

  /** Milliseconds until at most `room` units count. `used` do now, `whole` with the whole oldest bucket. */
  #untilRoom(
    base: number,
    view: View,
    used: number,
    room: number,
    reading: Reading,
    whole = this.#wholeIn(base, view),
  ): number {
    if (used <= room) return 0
    // The buckets before the one at `age` count whole: they leave the window before it does.
    const { newest, word, now } = view
    const age = this.#lastToLeave(base, view, whole, room)
    if (age < 0) return 0 // units have been taken out meanwhile
    const position = this.#smooth
      ? this.#leaves(
          newest - age,
          this.#window.ring.countAt(base, word, age),
          room - this.#sum(base, word, age),
        )
      : newest - age + this.#window.ring.size
    return Math.max(0, this.#ticks.untilPosition(reading.nowMs, Math.max(position, now)))
  }

  #untilEmptyIn(base: number, view: View, whole: number, reading: Reading): number {
    const age = this.#lastToLeave(base, view, whole, 0)
    if (age < 0) return 0
    return Math.max(0, this.#ticks.untilPosition(reading.nowMs, view.newest - age + this.#window.ring.size))
  }

  /** Units that count just after a charge in `tick`, the cell's tick. */
  usedAtCharge(base: number, tick: number, reading: Reading): number {
    const { ring } = this.#window
    return this.#smooth || this.#window.hasNodes ? this.used(base, reading) : ring.sum(base, tick, 0)
  }

  /** Milliseconds until no charge of this tick, or an earlier one, counts any more. */
  untilGone(tick: number, { nowMs, tick: readTick, absoluteTick }: Reading): number {
    const behind = this.#window.ring.distance(readTick, tick)
    const { modulus } = this.#ticks
    const age = behind > modulus / 2 ? behind - modulus : behind // negative if the cell is ahead
    const position = absoluteTick - age + this.#window.ring.size
    const last = this.#lastEnd
    if (position !== last.position || nowMs !== last.nowMs) {
      last.position = position
      last.nowMs = nowMs
      last.ms = Math.max(0, this.#ticks.untilPosition(nowMs, position))
    }
    return last.ms
  }

  /** Milliseconds until the key's block ends: 0 if it is not blocked, `Infinity` if the block is for ever. */
  untilUnblocked(base: number, reading: Reading): number {
    const { words } = this.#window
    if ((load(words, base + ADM) & COUNT) !== BLOCKED) return 0
    return this.#window.until.wholeMs(load(words, base + UNTIL), reading.nowMs)
  }

  /** Milliseconds until a new key may take this way of a full table, if it is not blocked then. */
  untilExpired(base: number, reading: Reading): number {
    const tick = this.#tickOf(base, reading)
    const isEmpty = (load(this.#window.words, base + ADM) & COUNT) === 0
    const free = tick + (isEmpty ? 1 : this.#window.ring.size + 1) // see Ring.isPast, Ring.isExpired
    return Math.max(0, this.#ticks.untilPosition(reading.nowMs, free))
  }

  startMs(tick: number, readingMs: number): number {
    return this.#ticks.startOf(tick, readingMs)
  }

  endMs(tick: number, readingMs: number): number {
    return this.startMs(tick, readingMs) + this.#ticks.granuleMs
  }

  effectMs(tick: number, readingMs: number): number {
    return this.#ticks.startOf(tick, readingMs)
  }

  /**
   * Calls `compute` until the cell's tick is the same before and after it (`range-sum/fenwick.ts` says why).
   */
  #inOneTick<T>(base: number, reading: Reading, compute: (view: View) => T): T {
    const { ring, words } = this.#window
    for (let tries = 0; ; tries = again(tries)) {
      const word = load(words, base + TICK)
      const newest = reading.absoluteTick - ring.behind(base, word, reading)
      const tick = reading.absoluteTick
      // If a clock that stepped back has not reached the cell's tick, the window ends there.
      const now = newest > tick ? newest : tick + (this.#smooth ? reading.sixteenth / SIXTEENTHS : 0)
      const length = Math.max(0, newest - Math.max(newest, tick) + ring.size)
      const result = compute({ newest, word, length, now })
      if (read(words, base + TICK) === word) return result
    }
  }

  /** Units in the view's window. The oldest bucket counts by its part inside. */
  #usedIn(base: number, { newest, word, length, now }: View): number {
    // As in `Ring.sum`: a bucket that counts whole may be part of a node's count.
    if (!this.#smooth || length === 0 || Number.isInteger(now)) return this.#sum(base, word, length)
    const oldest = this.#window.ring.countAt(base, word, length - 1)
    return this.#sum(base, word, length - 1) + this.#counting(newest - length + 1, oldest, now)
  }

  /** The same if the oldest bucket counts whole. */
  #wholeIn(base: number, { word, length }: View): number {
    return this.#sum(base, word, length)
  }

  #sum(base: number, word: number, length: number): number {
    const { ring } = this.#window
    const slot = ring.slot(word)
    return length <= 0 ? 0 : ring.sums.sum(base, slot, ring.lap, length)
  }

  /**
   * The age in ticks of the bucket that must leave last before at most `room` units count, or -1 if no more
   * count now. `whole` units are in the window. With nodes it is found by sums, because sums decide. If a
   * thread died, a node may count more than the buckets that `find` reads.
   */
  #lastToLeave(base: number, { word, length }: View, whole: number, room: number): number {
    if (whole <= room) return -1
    const { ring, hasNodes } = this.#window
    const slot = ring.slot(word)
    const found = ring.sums.find(base, slot, ring.lap, length, whole - room - 1)
    if (!hasNodes) return found
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

  /** The cell's tick, not wrapped. It is less than the modulus behind the reading's, or ahead of it. */
  #tickOf(base: number, reading: Reading): number {
    const { ring, words } = this.#window
    const tick = load(words, base + TICK)
    return reading.absoluteTick - ring.behind(base, tick, reading)
  }

  /** The part of the oldest bucket's count that is inside a window that ends at `edge`, rounded up. */
  #counting(tick: number, count: number, edge: number): number {
    const age = edge - tick - this.#window.ring.size + 1 // the part of it that has left the window
    return age > 0 ? Math.ceil(count * (1 - age)) : count
  }

  /**
   * With the smooth edge: the first position, in granules, at which a bucket counts at most `most`. If `most`
   * is not below `count`, a node counts too much (`#lastToLeave`). As soon as a part of the node's first bucket
   * is out, the buckets below it are summed instead.
   */
  #leaves(tick: number, count: number, most: number): number {
    const inside = (SIXTEENTHS * most) / count
    const sixteenths = count > most ? Math.min(SIXTEENTHS, Math.ceil(SIXTEENTHS - inside)) : 1
    return tick + this.#window.ring.size - 1 + sixteenths / SIXTEENTHS
  }
}
