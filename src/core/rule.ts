import { type Duration, formatDuration, parseDuration } from './duration.js'
import { type ErrorCode, MillraceError } from './errors.js'
import { formatSize, parseSize, type Size } from './sizes.js'
import { wholeUnitsIn } from './units.js'

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
   * What a key may use in any window: an integer from 1 to 4,194,302. With `unit` it may be larger, and a
   * size such as `'10GB'`. It is rounded down to whole units.
   */
  limit: Size
  /**
   * The size of the units that are counted, for a limit above 4,194,302: a number or a size such as
   * `'64KB'`. The limit must be 1 to 4,194,302 units. All costs, limits and counts of the rule are then
   * quantities, such as bytes. Every conversion to units rounds against the client: a cost up, a limit down.
   * @default costs and limits are counted as they are
   */
  unit?: Size
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
   * The algorithm.
   * - `'sliding-window'`: counts in buckets of one granularity. Exact to a granularity.
   * - `'sliding-counter'`: counts in two windows aligned to the clock, the present one and the one before.
   *   What was used in the one before counts by the part of it that the last `window` still covers, in
   *   sixteenths, rounded up: as if it had been used evenly. It takes the least memory, and is not exact. It
   *   has no `granularity` and no `edge`.
   * @default 'sliding-window'
   */
  algorithm?: 'sliding-window' | 'sliding-counter'
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
  'unit',
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
  /** In whole units, if there is a unit. */
  readonly limit: number
  /** Present if the option was given: 1 to 2^53 - 1. */
  readonly unit?: number
  readonly windowMs: number
  /** The window's number of granules, 1 to 2^20. */
  readonly buckets: number
  readonly edge: Edge
  readonly algorithm: AlgorithmName
  /** Present if the option was given. */
  readonly rangeSum?: RangeSumName
  /** Present if true. */
  readonly countRefused?: true
  /** Present if true. */
  readonly shadow?: true
}

export const DEFAULT_ALGORITHM = 'sliding-window' satisfies AlgorithmName

/** The names of the algorithms. */
export type AlgorithmName = NonNullable<RuleOptions['algorithm']>

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

/** @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, or `code` */
export function checkLimit(
  limit: unknown,
  option = 'limit',
  code: ErrorCode = 'ERR_MILLRACE_INVALID_RULE',
): asserts limit is number {
  if (isLimit(limit)) return
  const fits = parseSize(limit) === undefined ? 'more' : `this with unit: ${fittingUnit(limit as Size)}`
  const expected = `an integer from 1 to ${MAX_LIMIT}; a rule with the option unit may have ${fits}`
  throw new MillraceError(code, option, limit, expected)
}

/**
 * Returns a limit in whole units, rounded down. Without a unit it is the limit itself.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, or `code`
 */
export function limitIn(
  unit: number | undefined,
  limit: unknown,
  option = 'limit',
  code: ErrorCode = 'ERR_MILLRACE_INVALID_RULE',
): number {
  if (unit === undefined) {
    checkLimit(limit, option, code)
    return limit
  }
  const refuse = (expected: string) => new MillraceError(code, option, limit, expected)
  const quantity = parseSize(limit)
  if (quantity === undefined) throw refuse("a whole number from 1 to 2^53 - 1, or a size such as '10GB'")
  const units = wholeUnitsIn(quantity, unit)
  if (units < 1) throw refuse(`at least the unit, ${unit}`)
  if (units <= MAX_LIMIT) return units
  const most = `at most ${MAX_LIMIT * unit}, ${MAX_LIMIT} units of ${unit}`
  throw refuse(`${most}; a rule with unit: ${fittingUnit(limit as Size)} may have this limit`)
}

/** The smallest unit of 1, 2 or 5 times a power of ten in which a limit fits, as the limit is written. */
function fittingUnit(limit: Size): string {
  const least = (parseSize(limit) as number) / MAX_LIMIT
  const power = 10 ** Math.max(0, Math.floor(Math.log10(least)))
  const unit = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least)!
  return typeof limit === 'number' ? `${unit}` : `'${formatSize(unit)}'`
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
  const { limit, name = 'default', algorithm = DEFAULT_ALGORITHM, edge: givenEdge, rangeSum } = options
  const { unit, window, granularity, countRefused = false, shadow = false } = options
  const unitSize = unit === undefined ? undefined : checkUnit(unit, `${path}unit`)
  const wholeLimit = limitIn(unitSize, limit, `${path}limit`)
  if (typeof name !== 'string' || name === '')
    throw invalid(`${path}name`, name, 'a string of at least one character')
  const isCounter = algorithm === 'sliding-counter'
  if (!isCounter && algorithm !== DEFAULT_ALGORITHM) {
    throw invalid(`${path}algorithm`, algorithm, "'sliding-window' or 'sliding-counter'")
  }
  const { edge = 'strict' } = isCounter
    ? { edge: edgeOfCounter(givenEdge, granularity, path) }
    : { edge: givenEdge }
  if (edge !== 'strict' && edge !== 'smooth') throw invalid(`${path}edge`, edge, "'strict' or 'smooth'")
  if (rangeSum !== undefined && rangeSum !== 'blocks' && rangeSum !== 'fenwick') {
    throw invalid(`${path}rangeSum`, rangeSum, "'blocks' or 'fenwick'")
  }
  checkFlag(countRefused, `${path}countRefused`)
  checkFlag(shadow, `${path}shadow`)
  const windowMs = checkWindow(window, `${path}window`)
  const buckets = isCounter ? 1 : checkGranularity(granularity, windowMs, `${path}granularity`)
  if (rangeSum !== undefined && buckets <= MOST_LINEAR) {
    throw invalid(
      `${path}rangeSum`,
      rangeSum,
      `nothing: a window of up to ${MOST_LINEAR} buckets (here ${buckets}) is summed bucket by bucket`,
    )
  }
  return {
    name,
    limit: wholeLimit,
    ...(unitSize !== undefined && { unit: unitSize }),
    windowMs,
    buckets,
    edge,
    algorithm,
    ...(rangeSum !== undefined && { rangeSum }),
    ...(countRefused && { countRefused }),
    ...(shadow && { shadow }),
  }
}

/** A sliding counter is the sliding window with one bucket in the window, and the smooth edge. */
function edgeOfCounter(edge: unknown, granularity: unknown, path: string): Edge {
  if (edge !== undefined) throw invalid(`${path}edge`, edge, "nothing beside algorithm: 'sliding-counter'")
  if (granularity !== undefined) {
    const expected = "nothing beside algorithm: 'sliding-counter', which counts in whole windows"
    throw invalid(`${path}granularity`, granularity, expected)
  }
  return 'smooth'
}

function checkUnit(unit: unknown, option: string): number {
  const size = parseSize(unit)
  if (size !== undefined) return size
  throw invalid(option, unit, "a whole number from 1 to 2^53 - 1, or a size such as '64KB'")
}

function checkFlag(value: unknown, option: string): void {
  if (typeof value !== 'boolean') throw invalid(option, value, 'true or false')
}

/**
 * Checks a changed window, and returns it with its number of granules. What is not given stays as it is in
 * `present`.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`
 */
export function checkChangedWindow(
  window: Duration | undefined,
  granularity: Duration | undefined,
  present: Pick<Rule, 'windowMs' | 'buckets'>,
): Pick<Rule, 'windowMs' | 'buckets'> {
  const windowMs = window === undefined ? present.windowMs : checkWindow(window, 'window')
  return { windowMs, buckets: checkGranularity(granularity, windowMs, 'granularity', present.buckets) }
}

function checkWindow(window: Duration, option: string): number {
  const windowMs = parseDuration(window, option, 'ERR_MILLRACE_INVALID_RULE')
  if (windowMs >= 1 && windowMs <= MAX_WINDOW_MS) return windowMs
  throw invalid(option, window, 'a duration of 1 ms to 10,000 years')
}

function checkGranularity(
  granularity: Duration | undefined,
  windowMs: number,
  option: string,
  otherwise = DEFAULT_BUCKETS,
): number {
  if (granularity === undefined) return otherwise
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
