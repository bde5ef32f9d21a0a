import { createRequire } from 'node:module'
import {
  ALGORITHM_ROWS,
  type CountedWindow,
  checkAlgorithm,
  chosenFor,
  DEFAULT_ALGORITHM,
  type LimitRange,
} from './algorithms.js'
import { type Duration, parseDuration } from './duration.js'
import { type ErrorCode, invalid, MillraceError } from './errors.js'
import { MOST_LINEAR } from './granularity.js'
import { lazily } from './lazily.js'
import { refuseUnknown } from './option-names.js'
import {
  burstFor,
  checkChoice,
  fillingMs,
  invalidRule,
  MAX_LIMIT,
  mostLimit,
  PERIOD_MS,
  PERIODS,
  type Period,
  type RangeSumName,
  refuseGranularity,
} from './rule-algorithms.js'
import { type CountedRule, FLAGS, RULE_OPTIONS, type RuleOptions, readOnce } from './rule-options.js'
import { warnIfShort } from './short-window.js'
import { formatSize, parseSize, type Size } from './sizes.js'
import { uncountedLimitIn } from './uncounted-limit.js'
import { wholeUnitsIn } from './units.js'

const require = createRequire(import.meta.url)

/** A rule that has been checked. */
export interface Rule extends CountedRule {
  /** Present if the option was given. */
  readonly rangeSum?: RangeSumName | undefined
}

/** The rules of a limiter, in order. Each has a name of its own. */
export type Rules = readonly [Rule, ...Rule[]]

export const MOST_RULES = 16
/** Where 0 and Infinity are limits. */
const UNCOUNTED = "only calls and policies may also have 0 or 'unlimited'"
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
  if (typeof limit === 'string' && isLimit(Number(limit)))
    throw new MillraceError(code, option, limit, `a number: ${Number(limit)}, without quotation marks`)
  if (uncountedLimitIn(limit) !== undefined)
    throw new MillraceError(code, option, limit, `an integer from 1 to ${MAX_LIMIT}; ${UNCOUNTED}`)
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
  if (quantity === undefined) {
    const expected = "a whole number from 1 to 2^53 - 1, or a size such as '10GB'"
    throw refuse(uncountedLimitIn(limit) === undefined ? expected : `${expected}; ${UNCOUNTED}`)
  }
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

/** Checks the options of one rule. Errors name an option after `path`. */
export type CheckRule = (options: RuleOptions, path?: string) => Rule

/**
 * Checks the option `rules`, and reads each of its values once.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` naming the option, the value and what would be right
 */
export function checkRules(rules: unknown, check: CheckRule = checkRule): Rules {
  const length = Array.isArray(rules) ? rules.length : 0
  if (length < 1 || length > MOST_RULES)
    throw invalidRule('rules', rules, `an array of 1 to ${MOST_RULES} rules`)
  const checked: Rule[] = []
  for (let i = 0; i < length; i++) {
    const at = `rules[${i}]`
    const options = ownOptions((rules as unknown[])[i], at)
    if (length > 1 && options.name === undefined) {
      throw invalidRule(`${at}.name`, undefined, 'a name, as there are several rules')
    }
    const rule = check(options, `${at}.`)
    const same = checked.findIndex(({ name }) => name === rule.name)
    if (same >= 0) throw invalidRule(`${at}.name`, rule.name, `another name than that of rules[${same}]`)
    checked.push(rule)
  }
  return checked as [Rule, ...Rule[]]
}

/**
 * The rules of a limiter: the option `rules`, or the one rule whose options stand beside the others. And the path of
 * each, for errors.
 * @throws MillraceError naming the option, the value and what would be right
 */
export function rulesGiven(
  options: object,
  check: CheckRule = checkRule,
): readonly [rules: Rules, pathOf: (index: number) => string] {
  const { rules } = options as { rules?: unknown }
  if (rules === undefined) return [[check(options as RuleOptions, '')], () => '']
  for (const name of RULE_OPTIONS) {
    const value = (options as RuleOptions)[name as keyof RuleOptions]
    if (value !== undefined) throw invalid(name, value, 'no value beside rules, whose rules have their own')
  }
  return [checkRules(rules, check), (index) => `rules[${index}].`]
}

/** A copy of a rule's options, whose values a getter can't change later. */
function ownOptions(options: unknown, at: string): RuleOptions {
  if (typeof options !== 'object' || options === null) {
    throw invalidRule(at, options, 'an object with at least limit and window')
  }
  refuseUnknown(options, RULE_OPTIONS, (name, expected) => invalidRule(at, name, expected))
  return readOnce(options as RuleOptions)
}

/**
 * Checks the options of one rule, and reads each once. Errors name an option after `path`.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` naming the option, the value and what would be right
 */
export function checkRule(options: RuleOptions, path = ''): Rule {
  const own = readOnce(options)
  const { limit, name = 'default', burst, maxLimit, unit, granularity, rangeSum } = own
  const unitSize = unit === undefined ? undefined : checkUnit(unit, `${path}unit`)
  const wholeLimit = limitIn(unitSize, limit, `${path}limit`)
  if (typeof name !== 'string' || name === '')
    throw invalidRule(`${path}name`, name, 'a string of at least one character')
  const choice = checkAlgorithm(own, path)
  const flags = flagsIn(own, path)
  const calendar = checkCalendar(own, path)
  const windowMs = calendar ? PERIOD_MS[calendar.period] : checkWindow(own.window, `${path}window`)
  const wholeBurst = burst === undefined ? wholeLimit : limitIn(unitSize, burst, `${path}burst`)
  const most = maxLimit === undefined ? wholeLimit : limitIn(unitSize, maxLimit, `${path}maxLimit`)
  // Literals without a spread: V8 takes thousands of instructions for each property after one.
  const chosen = {
    limit: wholeLimit,
    burst: wholeBurst,
    maxLimit: most,
    windowMs,
    granularity,
    edge: own.edge,
    align: own.align,
    period: calendar?.period,
    path,
  }
  const windowed = ALGORITHM_ROWS[choice === 'auto' ? DEFAULT_ALGORITHM : choice].counting(chosen)
  checkRangeSum(rangeSum, windowed.buckets, path)
  const algorithm = choice === 'auto' ? chosenFor(most, windowed, rangeSum) : choice
  const counted = algorithm === choice ? windowed : ALGORITHM_ROWS[algorithm].counting(chosen)
  return {
    name,
    unit: unitSize,
    algorithm,
    limit: counted.limit,
    windowMs: counted.windowMs,
    buckets: counted.buckets,
    units: counted.units,
    edge: counted.edge,
    align: counted.align,
    period: counted.period,
    timeZone: calendar?.timeZone,
    offsetMs: counted.offsetMs,
    rate: counted.rate,
    rangeSum,
    flags,
  }
}

const calendarModule = lazily(() => require('./calendar.js') as typeof import('./calendar.js'), 'creation')

/** The options of `align: 'calendar'`; undefined: the rule has a window. */
function checkCalendar(
  { align, period, timeZone, window }: RuleOptions,
  path: string,
): { readonly period: Period; readonly timeZone: string } | undefined {
  if (align !== 'calendar') {
    for (const [option, value] of Object.entries({ period, timeZone }))
      if (value !== undefined)
        throw invalidRule(`${path}${option}`, value, "nothing without align: 'calendar'")
    return undefined
  }
  if (window !== undefined)
    throw invalidRule(`${path}window`, window, "nothing beside align: 'calendar', whose windows are periods")
  const periods = PERIODS.filter((each) => each !== 'none')
  checkChoice(period, periods, `${path}period`)
  const known = calendarModule().knownTimeZone(timeZone === undefined ? 'UTC' : timeZone)
  if (known !== undefined) return { period, timeZone: known }
  const expected =
    "a time zone that this runtime knows by its name in the IANA database, such as 'Europe/Berlin'"
  throw invalidRule(`${path}timeZone`, timeZone, expected)
}

function checkRangeSum(rangeSum: unknown, buckets: number, path: string): void {
  if (rangeSum === undefined) return
  checkChoice(rangeSum, ['blocks', 'fenwick'], `${path}rangeSum`)
  if (buckets > MOST_LINEAR) return
  const expected = `nothing: a window of up to ${MOST_LINEAR} buckets (here ${buckets}) is summed bucket by bucket`
  throw invalidRule(`${path}rangeSum`, rangeSum, expected)
}

function checkUnit(unit: unknown, option: string): number {
  const size = parseSize(unit)
  if (size !== undefined) return size
  throw invalidRule(option, unit, "a whole number from 1 to 2^53 - 1, or a size such as '64KB'")
}

function flagsIn(options: RuleOptions, path: string): number {
  let flags = 0
  for (const [name, flag] of FLAGS) {
    const value: unknown = options[name]
    if (value === undefined) continue
    if (typeof value !== 'boolean') throw invalidRule(`${path}${name}`, value, 'true or false')
    if (value) flags |= flag
  }
  return flags
}

/**
 * Checks a changed window, and returns it with its granules. What is not given stays as it is in `present`,
 * whose limit is the new one.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`
 */
export function checkChangedWindow(
  window: Duration | undefined,
  granularity: Duration | undefined,
  present: CountedWindow & Pick<Rule, 'limit' | 'algorithm' | 'align' | 'rate'>,
): CountedWindow {
  const { algorithm, rate } = present
  const row = ALGORITHM_ROWS[algorithm]
  const windowMs = window === undefined ? present.windowMs : fillingMs(checkWindow(window, 'window'), rate)
  if (!row.options.includes('granularity')) refuseGranularity(granularity, algorithm, windowMs)
  return row.inWindow(windowMs, present, granularity)
}

/**
 * Checks a changed limit, or that of a call, and returns it as the cells count it. `most` is the most that they
 * can count.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, or `code`
 */
export function checkOtherLimit(
  unit: number | undefined,
  limit: unknown,
  { most, rate }: LimitRange,
  option = 'limit',
  code: ErrorCode = 'ERR_MILLRACE_INVALID_RULE',
): number {
  const whole = limitIn(unit, limit, option, code)
  const own = rate === undefined ? whole : burstFor(whole, rate, option, code)
  if (own <= most) return own
  const expected = `at most ${mostLimit(most, rate) * (unit ?? 1)}, which this limiter can count. A new one may have it`
  throw new MillraceError(code, option, limit, expected)
}

function checkWindow(window: Duration | undefined, option: string): number {
  const windowMs = parseDuration(window as Duration, option, 'ERR_MILLRACE_INVALID_RULE')
  if (typeof window === 'number') warnIfShort(windowMs)
  if (windowMs >= 1 && windowMs <= MAX_WINDOW_MS) return windowMs
  throw invalidRule(option, window, 'a duration of 1 ms to 10,000 years')
}
