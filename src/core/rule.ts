import { type Duration, formatDuration, parseDuration } from './duration.js'
import { MillraceError } from './errors.js'

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

/** The options of a rule. */
export interface RuleOptions {
  /**
   * The units that a key may use in any window: an integer from 1 to 4,194,302. For more, count in larger
   * units.
   */
  limit: number
  /** How long a unit counts after its use: from 1 ms to 10,000 years, such as `'1m'`. */
  window: Duration
  /**
   * The length of one bucket. A unit counts for up to one granularity longer than the window. A finer
   * granularity is more exact, and takes 4 more bytes of each key for each bucket. It must divide the window
   * into at most 1,048,576 equal buckets.
   * @default a sixtieth of the window
   */
  granularity?: Duration
  /**
   * The data structure that sums a window of more than 256 buckets: `'blocks'` or `'fenwick'`. Both decide
   * alike; they differ only in speed. A window of up to 256 buckets is summed directly, and does not accept
   * this option.
   * @default 'blocks'; above 262,144 buckets 'fenwick'
   */
  rangeSum?: RangeSumName
  /**
   * The algorithm. There is one.
   * @default 'sliding-window'
   */
  algorithm?: 'sliding-window'
  /**
   * How the limiter counts the oldest bucket, which lies only partly inside the window.
   * @default 'strict'
   */
  edge?: Edge
  /**
   * Whether a refused request is charged, too: a client that goes on asking is refused until it pauses. The
   * refusals of `check`, `checkOrThrow`, `reserve` and `checkMany` are charged, up to the largest count of a
   * bucket (see `penalize`). Those of `wait` and `peek` are not, nor is a cost above the limit. The addon
   * leaves the refusals and the batches of such a rule to TypeScript.
   * @default false
   */
  countRefused?: boolean
  /**
   * Whether to try the rule without enforcing it: it decides and counts, but every request is allowed.
   * `decision.shadow` and `stats().shadowDenied` say what the rule would have done. A request that would have
   * been refused is not charged.
   * @default false
   */
  shadow?: boolean
  /**
   * The name of the rule, in decisions and for `update`: 1 or more characters.
   * @default 'default'
   */
  name?: string
}

/** The names of the options of a rule. */
export const RULE_OPTIONS: readonly string[] = [
  'limit',
  'window',
  'granularity',
  'algorithm',
  'edge',
  'rangeSum',
  'name',
  'countRefused',
  'shadow',
]

/** A rule that has been checked. */
export interface Rule {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  /** The window's number of granules, 1 to 2^20. */
  readonly buckets: number
  readonly edge: Edge
  /** Present if the option was given. */
  readonly rangeSum?: RangeSumName
  /** Present if true. */
  readonly countRefused?: true
  /** Present if true. */
  readonly shadow?: true
}

/** The rules of a limiter, in order. Each has a name of its own. */
export type Rules = readonly [Rule, ...Rule[]]

export const MOST_RULES = 16
/** The largest limit. A cell counts in 22 bits, and all ones mean that the key is blocked. */
export const MAX_LIMIT = 2 ** 22 - 2
export const MAX_BUCKETS = 2 ** 20
/** Windows of up to this many granules are summed granule by granule. */
export const MOST_LINEAR = 256
const DEFAULT_BUCKETS = 60
const MAX_WINDOW_MS = 10_000 * 366 * 86_400_000

export function isLimit(limit: unknown): limit is number {
  return Number.isInteger(limit) && (limit as number) >= 1 && (limit as number) <= MAX_LIMIT
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_RULE` */
export function checkLimit(limit: unknown, option = 'limit'): asserts limit is number {
  if (!isLimit(limit)) {
    throw invalid(option, limit, `an integer from 1 to ${MAX_LIMIT} (count in larger units for more)`)
  }
}

/**
 * Checks the option `rules`, and reads each of its values once.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` naming the option, the value and what would be right
 */
export function checkRules(rules: unknown): Rules {
  const length = Array.isArray(rules) ? rules.length : 0
  if (length < 1 || length > MOST_RULES) throw invalid('rules', rules, `an array of 1 to ${MOST_RULES} rules`)
  const checked: Rule[] = []
  for (let i = 0; i < length; i++) {
    const at = `rules[${i}]`
    const options = ownOptions((rules as unknown[])[i], at)
    if (length > 1 && options.name === undefined) {
      throw invalid(`${at}.name`, undefined, 'a name, as there are several rules')
    }
    const rule = checkRule(options, `${at}.`)
    const same = checked.findIndex(({ name }) => name === rule.name)
    if (same >= 0) throw invalid(`${at}.name`, rule.name, `another name than that of rules[${same}]`)
    checked.push(rule)
  }
  return checked as unknown as Rules
}

/** A copy of a rule's options, whose values a getter can't change later. */
function ownOptions(options: unknown, at: string): RuleOptions {
  if (typeof options !== 'object' || options === null) {
    throw invalid(at, options, 'an object with at least limit and window')
  }
  for (const name of Object.keys(options)) {
    if (!RULE_OPTIONS.includes(name)) throw invalid(at, name, `only ${RULE_OPTIONS.join(', ')}`)
  }
  const given = options as Record<string, unknown>
  return Object.fromEntries(RULE_OPTIONS.map((name) => [name, given[name]])) as unknown as RuleOptions
}

/**
 * Checks the options of one rule. Errors name an option after `path`.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` naming the option, the value and what would be right
 */
export function checkRule(options: RuleOptions, path = ''): Rule {
  const { limit, name = 'default', edge = 'strict', algorithm = 'sliding-window', rangeSum } = options
  const { window, granularity, countRefused = false, shadow = false } = options
  checkLimit(limit, `${path}limit`)
  if (typeof name !== 'string' || name === '')
    throw invalid(`${path}name`, name, 'a string of at least one character')
  if (edge !== 'strict' && edge !== 'smooth') throw invalid(`${path}edge`, edge, "'strict' or 'smooth'")
  if (algorithm !== 'sliding-window') throw invalid(`${path}algorithm`, algorithm, "'sliding-window'")
  if (rangeSum !== undefined && rangeSum !== 'blocks' && rangeSum !== 'fenwick') {
    throw invalid(`${path}rangeSum`, rangeSum, "'blocks' or 'fenwick'")
  }
  checkFlag(countRefused, `${path}countRefused`)
  checkFlag(shadow, `${path}shadow`)
  const windowMs = parseDuration(window, `${path}window`, 'ERR_MILLRACE_INVALID_RULE')
  if (windowMs < 1 || windowMs > MAX_WINDOW_MS) {
    throw invalid(`${path}window`, window, 'a duration of 1 ms to 10,000 years')
  }
  const buckets = checkGranularity(granularity, windowMs, `${path}granularity`)
  if (rangeSum !== undefined && buckets <= MOST_LINEAR) {
    throw invalid(
      `${path}rangeSum`,
      rangeSum,
      `nothing: a window of up to ${MOST_LINEAR} buckets (here ${buckets}) is summed bucket by bucket`,
    )
  }
  return {
    name,
    limit,
    windowMs,
    buckets,
    edge,
    ...(rangeSum !== undefined && { rangeSum }),
    ...(countRefused && { countRefused }),
    ...(shadow && { shadow }),
  }
}

function checkFlag(value: unknown, option: string): void {
  if (typeof value !== 'boolean') throw invalid(option, value, 'true or false')
}

function checkGranularity(granularity: Duration | undefined, windowMs: number, option: string): number {
  if (granularity === undefined) return DEFAULT_BUCKETS
  const granuleMs = parseDuration(granularity, option, 'ERR_MILLRACE_INVALID_RULE')
  if (granuleMs > windowMs) {
    throw invalid(option, granularity, `at most the window, ${formatDuration(windowMs)}`)
  }
  const parts = windowMs / granuleMs
  const buckets = Math.round(parts)
  if (buckets > MAX_BUCKETS) {
    const least = windowMs / MAX_BUCKETS // not rounded, so that it divides the window
    const handy = granularityFrom(least, windowMs)
    throw invalid(
      option,
      granularity,
      `at least ${least} in milliseconds, such as ${handy}: a window has at most ${MAX_BUCKETS} buckets`,
    )
  }
  // A granularity such as 1000 / 3 ms has no exact decimal. An error of 1 in 10^9 is allowed.
  if (Math.abs(parts - buckets) > parts * 1e-9) {
    const nearest = nearestDivisor(granuleMs, windowMs)
    throw invalid(
      option,
      granularity,
      `a whole part of the window; in whole milliseconds the nearest is ${nearest}`,
    )
  }
  return buckets
}

/** The finest granularity of at least `granuleMs` that divides the window, as text. */
export function granularityFrom(granuleMs: number, windowMs: number): string {
  return nearestDivisor(granuleMs, windowMs, 1)
}

/** The same in whole hours, minutes or seconds, if one of those is at most 1.5 times as coarse. */
export function roundGranularityFrom(granuleMs: number, windowMs: number): string {
  for (const unitMs of [3_600_000, 60_000, 1_000]) {
    for (let ms = Math.ceil(granuleMs / unitMs) * unitMs; ms <= 1.5 * granuleMs; ms += unitMs) {
      if (windowMs % ms === 0) return formatDuration(ms)
    }
  }
  return granularityFrom(granuleMs, windowMs)
}

/** The duration nearest to `granuleMs` that divides the window, as text. With `direction` 1, not below it. */
function nearestDivisor(granuleMs: number, windowMs: number, direction = 0): string {
  const step = Number.isInteger(windowMs) ? 1 : 0
  for (let off = 0; step && off < windowMs && off < 1e6; off++) {
    const down = Math.floor(granuleMs) - off
    const up = Math.ceil(granuleMs) + off
    const lower = direction === 0 && down >= 1 && windowMs % down === 0 && windowMs / down <= MAX_BUCKETS
    const upper = windowMs % up === 0
    if (lower && (!upper || granuleMs - down <= up - granuleMs)) return formatDuration(down)
    if (upper) return formatDuration(up)
  }
  return `${windowMs / Math.max(1, Math.round(windowMs / granuleMs))}ms`
}

function invalid(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_RULE', option, value, expected)
}
