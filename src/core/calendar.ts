// The days, weeks, months and years of a time zone, by the runtime's `Intl`.
import { MillraceError } from './errors.js'
import type { Period } from './rule-algorithms.js'

/** A period of a calendar, in milliseconds since 1970, in UTC. */
export interface CalendarPeriod {
  /** Periods since that of 1 January 1970: those that follow each other differ by 1. */
  readonly number: number
  readonly startMs: number
  /** The start of the next one. */
  readonly endMs: number
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** 1 January 1970 was a Thursday: three days after the Monday of its week. */
const SINCE_MONDAY = 3
const EPOCH_YEAR = 1970
/** No zone changes its offset by more, nor by two steps in so short a time. */
const MOST_CHANGE_MS = DAY_MS
/** A `Date` reaches so far, less the longest period and a change of the offset. */
const MOST_MS = 8.64e15 - 400 * DAY_MS

/**
 * Which period of a zone a moment lies in.
 *
 * A period begins at the first moment whose local date is in it, or after it: at midnight in most cases, and at the end of
 * the gap where clocks are put forward over midnight. It ends where the next one begins. If clocks are put back over
 * midnight, the hour that comes again stays in the new period. A date that a zone has left out has no moments.
 *
 * Bounds are whole minutes. Those of zones with seconds in their offsets, the last one until 1972, are rounded up.
 */
export class Calendar {
  readonly #period: Period
  readonly #format: Intl.DateTimeFormat
  #last: CalendarPeriod = { number: 0, startMs: 0, endMs: 0 }

  /** @throws RangeError if the runtime does not know the time zone */
  constructor(period: Period, timeZone: string) {
    this.#period = period
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` for a time that no calendar has */
  at(ms: number): CalendarPeriod {
    if (ms >= this.#last.startMs && ms < this.#last.endMs) return this.#last
    if (!(Math.abs(ms) <= MOST_MS)) {
      const expected = 'a time of the calendar, in milliseconds since 1970: up to 270,000 years from there'
      throw new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock.now()', ms, expected)
    }
    let number = numberOf(this.#period, ms + this.#offsetMs(ms))
    let endMs = this.startOf(number + 1)
    // Clocks that were put back over midnight show the end of the period before once more.
    while (endMs <= ms) endMs = this.startOf(++number + 1)
    this.#last = { number, startMs: this.startOf(number), endMs }
    return this.#last
  }

  /** When the period of this number begins. */
  startOf(number: number): number {
    const local = localStartOf(this.#period, number)
    if (!(Math.abs(local) <= MOST_MS)) return local
    const before = local - MOST_CHANGE_MS
    const offsetMs = this.#offsetMs(before)
    const start = Math.ceil((local - offsetMs) / MINUTE_MS) * MINUTE_MS
    // Up to `start` the offset has not changed. Otherwise it changes before `start`: until then local times are before
    // the period, and from then on they only rise.
    if (this.#offsetMs(start) === offsetMs) return start
    let [low, high] = [before, local + MOST_CHANGE_MS]
    while (high - low > MINUTE_MS) {
      const middle = Math.floor((low + high) / 2 / MINUTE_MS) * MINUTE_MS
      if (middle + this.#offsetMs(middle) >= local) high = middle
      else low = middle
    }
    return high
  }

  /** Local time minus UTC. */
  #offsetMs(ms: number): number {
    const [, sign, hours, minutes, seconds] = OFFSET.exec(this.#format.format(ms))!
    if (sign === undefined) return 0
    const offsetMs = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds ?? 0)) * 1_000
    return sign === '+' ? offsetMs : -offsetMs
  }
}

const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/

/** The number of the period that has this date. The date is that of UTC at `local`. */
function numberOf(period: Period, local: number): number {
  const day = Math.floor(local / DAY_MS)
  if (period === 'day') return day
  if (period === 'week') return Math.floor((day + SINCE_MONDAY) / 7)
  const date = new Date(local)
  const years = date.getUTCFullYear() - EPOCH_YEAR
  return period === 'year' ? years : 12 * years + date.getUTCMonth()
}

/** The first midnight of a period, as if its zone were UTC. */
function localStartOf(period: Period, number: number): number {
  if (period === 'day') return number * DAY_MS
  if (period === 'week') return (7 * number - SINCE_MONDAY) * DAY_MS
  const months = period === 'year' ? 12 * number : number
  const first = new Date(0)
  first.setUTCFullYear(EPOCH_YEAR, months, 1)
  // Beyond the range of dates, all that matters is that later periods begin later.
  return Number.isNaN(first.getTime()) ? months * 30 * DAY_MS : first.getTime()
}

/**
 * The time zone as the runtime writes it, if that differs in its capitals only; an alias stays as it was given, because
 * runtimes replace them in different ways. Undefined: the runtime does not know it.
 */
export function knownTimeZone(timeZone: unknown): string | undefined {
  if (typeof timeZone !== 'string') return undefined
  try {
    const own = new Intl.DateTimeFormat('en-US', { timeZone }).resolvedOptions().timeZone
    return own.toLowerCase() === timeZone.toLowerCase() ? own : timeZone
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
