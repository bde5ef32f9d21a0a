/** The options of a rule that depend on its algorithm. */
import { type Duration, formatDuration } from './duration.js'
import { type ErrorCode, MillraceError } from './errors.js'

/**
 * How a limiter counts the oldest bucket, which lies only partly inside the window.
 * - `'strict'`: whole. A key never exceeds its limit in any window, and is refused up to one granularity
 *   early.
 * - `'smooth'`: by the part inside the window. It is closer to the limit on average. A key never exceeds its
 *   limit in any window minus one granularity.
 */
export type Edge = 'strict' | 'smooth'

/** How a window of many buckets is summed. */
export type RangeSumName = 'blocks' | 'fenwick'

/** Where the windows of `'fixed-window'` begin: see the option `align` of {@link RuleOptions}. */
export type Alignment = 'clock' | 'first' | 'calendar'
/** Where the windows of any algorithm begin. Only fixed windows have a beginning. */
export type Align = Alignment | 'none'

/** The options of a token bucket: it refills by `limit` in each window, and holds `burst`. */
export interface Rate {
  readonly limit: number
  readonly burst: number
}

/** The largest limit of a fixed window: its count has 21 bits. */
export const MOST_IN_FIXED_WINDOW = 2 ** 21 - 2
/** The largest limit. A cell counts in 22 bits, and all ones mean that the key is blocked. */
export const MAX_LIMIT = 2 ** 22 - 2

/** In the order of their numbers in a record. */
export const EDGES = ['strict', 'smooth'] as const satisfies readonly Edge[]
/** How the windows of a rule begin; 'none': they slide. */
export const ALIGNS = ['none', 'clock', 'first', 'calendar'] as const satisfies readonly Align[]

/** The window of a rule with `align: 'calendar'`. A week begins on Monday. */
export type Period = 'day' | 'week' | 'month' | 'year'
/** In the order of their numbers in a record; 'none': the rule has a window of one length. */
export const PERIODS = ['none', 'day', 'week', 'month', 'year'] as const satisfies readonly (
  | Period
  | 'none'
)[]

const DAY_MS = 86_400_000
/** What stands for the length of a period where one length is needed: its longest one, with days of 24 hours. */
export const PERIOD_MS: Readonly<Record<Period, number>> = {
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 31 * DAY_MS,
  year: 366 * DAY_MS,
}

/** Whether windows begin at moments of the system's time, and not of the limiter's clock. */
export const goesBySystemTime = (align: Align): boolean => align === 'clock' || align === 'calendar'

/** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` */
export function checkChoice<T>(value: unknown, choices: readonly T[], option: string): asserts value is T {
  if (choices.includes(value as T)) return
  throw invalidRule(option, value, choices.map((choice) => `'${choice}'`).join(' or '))
}

/** The largest limit of a sliding log: it has an entry for each unit. */
export const MOST_IN_LOG = 4096
/** The ticks of the longest window of a log: half of those of an entry, less those that it may be ahead (`algorithms/log/log-entry.ts`). */
export const MOST_LOG_TICKS = 2 ** 27 - 2 ** 22

/** The ticks of a log's window: milliseconds, or if it has too many, the shortest whole ones that divide it. */
export function logTicksOf(windowMs: number): number {
  return granulesIn(windowMs, Math.min(Math.ceil(windowMs), MOST_LOG_TICKS))
}

/** The most granules by which a fixed window places its beginning at the key's first hit. */
const MOST_BEGINNINGS = 2 ** 12

/** The granules of a fixed window: of whole milliseconds, if its own are whole. */
export function granulesOf(align: Align, windowMs: number): number {
  return align === 'first' ? granulesIn(windowMs, MOST_BEGINNINGS) : 1
}

const MOST_COARSER = 16

/** The most granules of a window, up to `most`, of whole milliseconds if its own are whole. */
function granulesIn(windowMs: number, most: number): number {
  if (!Number.isInteger(windowMs)) return most
  const leastMs = Math.max(1, Math.ceil(windowMs / most))
  for (let granuleMs = leastMs; granuleMs < MOST_COARSER * leastMs; granuleMs++)
    if (windowMs % granuleMs === 0) return windowMs / granuleMs
  return most
}

/** A token bucket holds at most so many time units: `algorithms/word/token-bucket.ts`. */
export const MOST_UNITS = 2 ** 18
/** A time unit is at least so long, unless a token is shorter: about a microsecond. */
const MOST_UNITS_PER_MS = 1024
/** The granules in which a token bucket fills up. */
const GRANULES = 8

/** How a token bucket counts time. */
export interface TokenTime {
  /** In which an empty bucket fills up. */
  readonly windowMs: number
  readonly buckets: number
  /** Time units in this window: `burst` times a power of two, the most that fit. */
  readonly units: number
}

/**
 * The time units of a bucket of `burst` tokens that fills up in `windowMs`.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` if they do not fit
 */
export function tokenTime(burst: number, windowMs: number, option: string): TokenTime {
  if (burst > MOST_UNITS) {
    const expected = `at most ${MOST_UNITS} tokens at once; a rule with the option unit may have more`
    throw invalidRule(option, burst, expected)
  }
  if (windowMs < 1) {
    const least = Math.ceil(burst / windowMs)
    throw invalidRule(option, burst, `at least ${least} tokens at once, those of a millisecond`)
  }
  let units = burst
  while (2 * units <= MOST_UNITS && 2 * units <= MOST_UNITS_PER_MS * windowMs) units *= 2
  let buckets = GRANULES
  while (units % buckets !== 0 || (windowMs / buckets < 1 && buckets > 1)) buckets /= 2
  return { windowMs, buckets, units }
}

/**
 * The time units of a full bucket by a limit of at most `units`: `units`, those of the rule, if the limit divides them.
 * Otherwise a token is rounded up to a whole unit, and the bucket holds as many such tokens as the limit. So it admits
 * exactly the limit at once, and tokens never come faster than the limit.
 *
 * That bucket is larger. If it were so by a token or more, a key that has used all of its tokens by the rule's limit
 * would have one by the other. Then it stays at `units`, and admits fewer requests at once of a token each.
 */
export function fullBy(limit: number, units: number): number {
  const token = Math.ceil(units / limit)
  const full = limit * token
  return full - token < units ? full : units
}

/**
 * The limit of a token bucket as its cells count it: `burst` in the time in which that many tokens come.
 * @throws MillraceError of this code if the tokens of a burst are not whole
 */
export function burstFor(
  limit: number,
  { limit: rateLimit, burst }: Rate,
  option: string,
  code: ErrorCode,
): number {
  const tokens = (limit * burst) / rateLimit
  if (Number.isInteger(tokens)) return tokens
  const step = rateLimit / greatestCommonDivisor(rateLimit, burst)
  const expected = `a multiple of ${step}, as the burst is ${burst} tokens for a limit of ${rateLimit}`
  throw new MillraceError(code, option, limit, expected)
}

/** The largest limit of this rate whose burst is at most `most` tokens. */
export function mostLimit(most: number, rate: Rate | undefined): number {
  if (rate === undefined) return most
  const divisor = greatestCommonDivisor(rate.limit, rate.burst)
  return Math.floor(most / (rate.burst / divisor)) * (rate.limit / divisor)
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

/** The window in which a bucket of this burst fills up. */
export const fillingMs = (windowMs: number, rate: Rate | undefined): number =>
  rate === undefined ? windowMs : (windowMs * rate.burst) / rate.limit

/** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` */
export function refuseGranularity(
  granularity: Duration | undefined,
  algorithm: string,
  windowMs: number,
): void {
  if (granularity === undefined) return
  const expected = `nothing beside algorithm: '${algorithm}', here with a window of ${formatDuration(windowMs)}`
  throw invalidRule('granularity', granularity, expected)
}

export function invalidRule(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_RULE', option, value, expected)
}
