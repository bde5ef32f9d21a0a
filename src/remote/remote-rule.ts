import type { LimiterRule } from '../api/call-options.js'
import { ALGORITHM_ROWS, type CountedWindow, serverOf } from '../core/algorithms.js'
import { Calendar } from '../core/calendar.js'
import { MillraceError } from '../core/errors.js'
import type { Rule } from '../core/rule.js'
import { invalidRule } from '../core/rule-algorithms.js'
import { limiterRule } from '../core/rule-options.js'

/** Above the number of the algorithm (`OnServer.code`): the flags of a rule. */
export const ONE_FLAG = 16

/** A rule whose keys are on Redis, in whole units. */
export interface RemoteRule {
  readonly rule: Rule
  /** Granules of the window; of a fixed window, the milliseconds in which it may begin; time units of a bucket. */
  readonly parts: number
  readonly flags: number
  /** The window in whole milliseconds. */
  readonly windowMs: number
  /** A checksum of algorithm, window and parts; of a calendar, of its period and its time zone. */
  readonly shape: number
  /** Of a rule with `align: 'calendar'`. */
  readonly calendar?: Calendar
}

/**
 * Whether a kept period that ends at `endMs` is one of the calendar's, or a later one, that begins at `startMs`. Processes
 * may have other data of time zones, so the ends of one period may lie hours apart: its middle decides.
 */
export const isOfPeriod = (endMs: number, startMs: number, windowMs: number): boolean =>
  endMs - windowMs / 2 >= startMs

/** Whether two ends are those of one period. */
export const areOfPeriod = (end: number, other: number, windowMs: number): boolean =>
  Math.abs(end - other) < windowMs / 2

/** With 3,600 granules or 2^18 time units, all products in the script stay below 2^53. */
export const LONGEST_WINDOW_MS = 366 * 86_400_000
const MOST_GRANULES = 3_600
/** By now, so many units a millisecond since 1970 are below 2^53. */
const MOST_UNITS_PER_MS = 3_600
const SHORTEST_ROUNDED_MS = 1_000

/**
 * @param on the name of the store, for errors
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` for a rule that a store can't have
 */
export function checkRemoteRule(rule: Rule, path = '', on = 'Redis'): RemoteRule {
  const { algorithm, edge, windowMs, buckets, period, timeZone } = rule
  if (edge === 'smooth') throw invalidRule(`${path}edge`, edge, `'strict' on ${on}`)
  const wholeMs = wholeWindowMs(rule, path, on)
  if (windowMs > LONGEST_WINDOW_MS) throw invalidRule(`${path}window`, windowMs, `at most 366 days on ${on}`)
  const { options } = ALGORITHM_ROWS[algorithm]
  const server = serverOf(algorithm)
  if (options.includes('granularity') && buckets > MOST_GRANULES) {
    const expected = `at least ${windowMs / MOST_GRANULES} ms: ${MOST_GRANULES} granules on ${on}`
    throw invalidRule(`${path}granularity`, windowMs / buckets, expected)
  }
  const code = server.code!
  const parts = server.parts(rule)
  const flags = code + ONE_FLAG * rule.flags
  const common = { rule, parts, flags, windowMs: wholeMs }
  if (period === 'none') return { ...common, shape: checksum(`${code} ${parts} ${wholeMs}`) }
  const calendar = new Calendar(period, timeZone!)
  return { ...common, shape: checksum(`${code} ${period} ${timeZone}`), calendar }
}

/**
 * The time in which a burst fills up is often no whole number of milliseconds. It is rounded up, by at most
 * one thousandth: a bucket never refills too fast.
 */
function wholeWindowMs({ windowMs, rate, units }: Rule, path: string, on: string): number {
  const wholeMs = Math.ceil(windowMs)
  if (rate === undefined && wholeMs !== windowMs)
    throw invalidRule(`${path}window`, windowMs, `whole milliseconds on ${on}`)
  if (wholeMs !== windowMs && windowMs < SHORTEST_ROUNDED_MS) {
    const expected = `a burst that fills up in whole milliseconds, or in a second or more, on ${on}`
    throw invalidRule(`${path}burst`, rate!.burst, expected)
  }
  if (units > MOST_UNITS_PER_MS * windowMs) {
    const expected = `at most ${MOST_UNITS_PER_MS} tokens a millisecond on ${on}`
    throw invalidRule(`${path}limit`, units / windowMs, expected)
  }
  return wholeMs
}

/** FNV-1a, folded to 16 bits. */
function checksum(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 16) ^ (hash & 0xffff)
}

/** The rule as `limiter.rule` shows it. */
export function shownRule({ rule, parts }: RemoteRule): LimiterRule {
  const granularityMs = rule.align === 'none' ? rule.windowMs / parts : parts
  return limiterRule({ ...rule, limit: rule.limit * (rule.unit ?? 1), granularityMs })
}

/** Whether a rule has these windows already. */
export const isInWindowOf = (rule: Rule, { windowMs, buckets, units }: CountedWindow): boolean =>
  rule.windowMs === windowMs && rule.buckets === buckets && rule.units === units

/** The error of a window that a limiter can't have. */
export const windowError = (windowMs: number, expected: string): MillraceError =>
  new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'window', windowMs, expected)
