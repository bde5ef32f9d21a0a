import type { Reading } from '../../core/reading.js'
import type { Ticks } from '../../core/ticks.js'
import { ADM, BLOCKED, COUNT, TICK, UNTIL } from '../../memory/layout.js'
import { load } from '../../memory/words.js'
import type { CellEstimates, Foresight } from '../algorithm.js'
import type { SummedCells } from '../window/summed-cells.js'
import type { CellTime } from '../word/cell-time.js'
import type { LogEntries } from './log-entries.js'
import { MOST_AHEAD } from './log-entry.js'

/** What a log has. */
interface Log extends Pick<SummedCells, 'words' | 'until'> {
  readonly entries: LogEntries
  readonly time: CellTime
  readonly windowTicks: number
  dateOf(e: number, reading: Reading): number
  hasRested(base: number, tick: number, reading: Reading): boolean
}

/** The units of a cell at a reading. */
interface View {
  /** The cell's tick, and as its word. Ticks are not wrapped here. */
  readonly newest: number
  readonly word: number
  /** Units of this age in the cell's tick, and older ones, do not count. */
  readonly length: number
}

/**
 * Computes what happens to a log if no other operation changes it. Each result is a snapshot, and exact: one
 * millisecond less is too early.
 */
export class LogEstimates implements CellEstimates {
  readonly runsOff = false
  readonly #log: Log
  readonly #ticks: Ticks
  readonly #foresight = { used: 0, fitsMs: 0, emptyMs: 0 }

  constructor(log: Log, ticks: Ticks) {
    this.#log = log
    this.#ticks = ticks
  }

  used(base: number, reading: Reading): number {
    return this.#ages(base, this.#view(base, reading)).length
  }

  usedAtCharge(base: number, tick: number): number {
    return this.#log.entries.sum(base, tick)
  }

  usedInLast(base: number, reading: Reading, lastMs: number): number {
    const view = this.#view(base, reading)
    const from = this.#ticks.position(reading.nowMs - lastMs)
    return this.#ages(base, view).filter((age) => view.newest - age > from).length
  }

  untilAdmitted(base: number, cost: number, limit: number, reading: Reading): number {
    return Math.max(this.untilFits(base, cost, limit, reading), this.untilUnblocked(base, reading))
  }

  untilFits(base: number, cost: number, limit: number, reading: Reading): number {
    const view = this.#view(base, reading)
    return this.#untilAtMost(limit - cost, this.#ages(base, view), view, reading)
  }

  untilEmpty(base: number, reading: Reading): number {
    const view = this.#view(base, reading)
    return this.#untilAtMost(0, this.#ages(base, view), view, reading)
  }

  foresee(base: number, room: number, reading: Reading): Foresight {
    const view = this.#view(base, reading)
    const ages = this.#ages(base, view)
    const foresight = this.#foresight
    foresight.used = ages.length
    foresight.fitsMs = this.#untilAtMost(room, ages, view, reading)
    foresight.emptyMs = this.#untilAtMost(0, ages, view, reading)
    return foresight
  }

  untilGone(tick: number, reading: Reading): number {
    const { time, windowTicks } = this.#log
    const date = this.#log.dateOf(tick, reading)
    const behind = time.distance(reading.tick, date)
    const { modulus } = this.#ticks
    const age = behind > modulus / 2 ? behind - modulus : behind // negative if the cell is ahead
    return Math.max(0, this.#ticks.untilPosition(reading.nowMs, reading.absoluteTick - age + windowTicks))
  }

  untilUnblocked(base: number, reading: Reading): number {
    const { words, until } = this.#log
    if ((load(words, base + ADM) & COUNT) !== BLOCKED) return 0
    return until.wholeMs(load(words, base + UNTIL), reading.nowMs)
  }

  untilExpired(base: number, reading: Reading): number {
    const { newest } = this.#view(base, reading)
    const isEmpty = (load(this.#log.words, base + ADM) & COUNT) === 0
    const free = newest + (isEmpty ? 1 : this.#log.windowTicks + 2) // see SlidingLog.isPast, SlidingLog.isExpired
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

  #view(base: number, reading: Reading): View {
    const word = load(this.#log.words, base + TICK)
    const newest = reading.absoluteTick - this.#log.time.behind(base, word, reading)
    const isOld = this.#log.hasRested(base, word, reading)
    const length = isOld ? -MOST_AHEAD : this.#log.windowTicks - Math.max(0, reading.absoluteTick - newest)
    return { newest, word, length }
  }

  /** The ages of the units that count at the view's reading, in ticks from the cell's. */
  #ages(base: number, { word, length }: View): number[] {
    return this.#log.entries.ages(base, word, length)
  }

  /** Milliseconds until at most `room` units count. */
  #untilAtMost(room: number, ages: readonly number[], { newest }: View, reading: Reading): number {
    const leaving = ages.length - room
    if (leaving <= 0) return 0
    const age = largest(leaving, ages)
    return Math.max(0, this.#ticks.untilPosition(reading.nowMs, newest - age + this.#log.windowTicks))
  }
}

/** The value that `rank` values are at least as large as, itself among them. */
function largest(rank: number, values: readonly number[]): number {
  if (rank === 1) return values.reduce((a, b) => Math.max(a, b))
  if (rank === values.length) return values.reduce((a, b) => Math.min(a, b))
  return Float64Array.from(values).sort()[values.length - rank]!
}
