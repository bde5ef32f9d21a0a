import { Calendar, type CalendarPeriod } from '../core/calendar.js'
import type { Period } from '../core/rule-algorithms.js'
import { Ticks } from '../core/ticks.js'
import { again } from '../core/tries.js'
import { HEADER } from './layout.js'
import type { Arena } from './records.js'
import { compareExchangePair, loadPair } from './words.js'

const MINUTE_MS = 60_000
const MOST_MINUTES = 2 ** 31 - 1
/** A kept period is at most so many times as long as the longest one of the calendar. Otherwise the memory is damaged. */
const MOST_LONGER = 3

/**
 * The ticks of a rule with `align: 'calendar'`: each is a period of the calendar, by its number.
 *
 * **Processes on one file may have other data of time zones**: one ends a day at midnight, the other an hour later. If
 * each went by its own, a key would get its limit again at the earlier midnight, and what was used after it would count in
 * the earlier day by one process and in the later day by the other: more than the limit by either. So the memory keeps
 * the bounds of the present period, and all go by these.
 *
 * - A reading inside the kept bounds is of the kept period, whatever the own data say.
 * - A process whose own period of that number ends later moves the kept end to it, as long as the period lasts, and also
 *   after its end if no process has begun the next one. So a period ends at the latest of the ends of all processes that
 *   have counted in it.
 * - The next period begins where the kept one ends, and no process begins it earlier.
 *
 * Both bounds are in one word of 64 bits, so no process sees one of another period. A thread may keep the tick of its
 * reading until the end that it has seen: the end only moves to later, and the tick stays the same.
 *
 * A reading before the kept period, because it is an old one or the clock has stepped back, is of the period by the own
 * data, but of an earlier number than the kept one.
 */
export class CalendarTicks extends Ticks {
  readonly #calendar: Calendar
  readonly #arena: Arena
  #bits = 0n
  #kept: CalendarPeriod | undefined
  /** Until when the last result of `#tickAt` holds. */
  #untilMs = 0

  /** The arena's rule has a period and a time zone. */
  constructor(arena: Arena) {
    const { windowMs, buckets, modulus, shift, offsetMs } = arena.shape
    super(windowMs, buckets, modulus, shift, offsetMs)
    this.#arena = arena
    this.#calendar = new Calendar(arena.period as Period, arena.timeZone!)
  }

  override enter(nowMs: number): number {
    return this.#tickAt(nowMs + this.offsetMs, true)
  }

  override until(_tick: number, nowMs: number): number {
    this.#tickAt(nowMs + this.offsetMs, false)
    return this.#untilMs - this.offsetMs
  }

  /** The tick, without a fraction. */
  override position(nowMs: number): number {
    return this.#tickAt(nowMs + this.offsetMs, false)
  }

  override startMs(tick: number): number {
    const kept = this.#keptIn(this.#load())
    const ms =
      tick === kept?.number
        ? kept.startMs
        : tick - 1 === kept?.number
          ? kept.endMs
          : this.#calendar.startOf(tick)
    return ms - this.offsetMs
  }

  override untilPosition(nowMs: number, position: number): number {
    return Math.ceil(this.startMs(position) - nowMs)
  }

  /** With `begins`, for a reading of the present, brings the kept period up to it. */
  #tickAt(ms: number, begins: boolean): number {
    for (let tries = 0; ; tries = again(tries)) {
      const bits = this.#load()
      const kept = this.#keptIn(bits)
      const own = this.#calendar.at(ms)
      if (kept !== undefined && ms < kept.startMs) {
        this.#untilMs = Math.min(kept.startMs, own.endMs)
        return Math.min(own.number, kept.number - 1)
      }
      const next = nextOf(kept, own, ms)
      this.#untilMs = next.endMs
      const nextBits = bitsOf(next)
      if (!begins || nextBits === undefined || nextBits === bits) return next.number
      if (compareExchangePair(this.#arena.words, HEADER.PERIOD, bits, nextBits) === bits) return next.number
    }
  }

  #load(): bigint {
    return loadPair(this.#arena.words, HEADER.PERIOD)
  }

  /** Its number is that of the middle: the bounds of another process may be off by hours. */
  #keptIn(bits: bigint): CalendarPeriod | undefined {
    if (bits === this.#bits) return this.#kept
    this.#bits = bits
    const startMs = Number(BigInt.asIntN(32, bits)) * MINUTE_MS
    const endMs = Number(BigInt.asIntN(32, bits >> 32n)) * MINUTE_MS
    const isSound = startMs < endMs && endMs - startMs <= MOST_LONGER * this.windowMs
    this.#kept = isSound ? { ...this.#calendar.at((startMs + endMs) / 2), startMs, endMs } : undefined
    return this.#kept
  }
}

/** The period of a reading that is not before the kept one. */
function nextOf(kept: CalendarPeriod | undefined, own: CalendarPeriod, ms: number): CalendarPeriod {
  if (kept === undefined) return own
  const { number, startMs, endMs } = kept
  if (own.number <= number) return { number, startMs, endMs: Math.max(endMs, own.endMs) }
  return ms < endMs ? kept : { ...own, startMs: Math.max(own.startMs, endMs) }
}

/** Undefined: 32 bits do not hold them. */
function bitsOf({ startMs, endMs }: CalendarPeriod): bigint | undefined {
  const [start, end] = [startMs / MINUTE_MS, endMs / MINUTE_MS]
  if (start < -MOST_MINUTES || end > MOST_MINUTES) return undefined
  return BigInt.asIntN(64, (BigInt(end) << 32n) | BigInt.asUintN(32, BigInt(start)))
}
