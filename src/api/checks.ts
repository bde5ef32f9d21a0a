/** Checks the arguments of both facades. */

import type { CountedWindow, LimitRange } from '../core/algorithms.js'
import type { Costs } from '../core/batch-decision.js'
import { type Duration, formatDuration, parseDuration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { granularityFrom } from '../core/granularity.js'
import type { Signal } from '../core/on-abort.js'
import { refuseUnknown } from '../core/option-names.js'
import { checkChangedWindow, checkOtherLimit, isLimit, limitIn, type Rule } from '../core/rule.js'
import { MAX_LIMIT } from '../core/rule-algorithms.js'
import { uncountedLimitIn } from '../core/uncounted-limit.js'
import type { CallLimit } from '../engines/engine.js'
import { COUNT, type Shape } from '../memory/layout.js'
import { canHold } from '../memory/records.js'
import type {
  CallOptions,
  CheckOptions,
  LimiterRule,
  RuleChange,
  UsageOptions,
  WaitOptions,
} from './call-options.js'

export function checkCost(cost: unknown, option = 'cost'): asserts cost is number {
  if (!isCost(cost)) throw invalidCostError(cost, option)
}

export function isCost(cost: unknown): cost is number {
  return Number.isInteger(cost) && (cost as number) >= 0
}

export function checkObject(options: unknown, option = 'options'): asserts options is object {
  if (typeof options === 'object' && options !== null) return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, options, 'an object')
}

export function checkOptions(options: unknown, known: readonly string[], option = 'options'): void {
  checkObject(options, option)
  refuseUnknown(
    options,
    known,
    (name, expected) => new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, name, expected),
  )
}

/**
 * Checks and copies the costs of a batch. The caller's array may change between two reads: by a getter, by a
 * proxy, or because another thread writes to it.
 */
export function ownCosts(costs: unknown, keys: number): Costs {
  if (typeof costs !== 'object' || costs === null) {
    checkCost(costs, 'costs')
    return costs
  }
  const given = costs as ArrayLike<unknown>
  if (given.length !== keys) {
    const expected = `one cost for all, or one for each of the ${keys} keys`
    throw new MillraceError('ERR_MILLRACE_INVALID_COST', 'costs', costs, expected)
  }
  const own = new Float64Array(keys)
  for (let i = 0; i < keys; i++) {
    const cost = given[i]
    if (!isCost(cost)) throw invalidCostError(cost, `costs[${i}]`)
    own[i] = cost
  }
  return own
}

/** The names of a limiter's rules, the unit of each, undefined without one, and the limits that it may have. */
export interface RuleNames {
  readonly names: readonly string[]
  readonly units: readonly (number | undefined)[]
  readonly ranges: readonly LimitRange[]
}

/** The most that a bucket of each rule can count. */
export function mostPenalty({ units }: RuleNames): number {
  return Math.min(COUNT * Math.min(...units.map((unit) => unit ?? 1)), Number.MAX_SAFE_INTEGER)
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_COST` also for more than one bucket can count */
export function checkPenalty(cost: unknown, rules: RuleNames): asserts cost is number {
  checkCost(cost)
  const most = mostPenalty(rules)
  if (cost <= most) return
  const expected = `an integer from 0 to ${most}, the most that a bucket counts`
  throw new MillraceError('ERR_MILLRACE_INVALID_COST', 'cost', cost, expected)
}

/** The cost that a reservation of `reserved` is committed with: at most `more` above that. */
export function checkActualCost(cost: unknown, reserved: number, more: number): asserts cost is number {
  if (isCost(cost) && cost - reserved <= more) return
  const expected = `an integer from 0 to ${reserved + more}, ${more} above the reserved cost`
  throw new MillraceError('ERR_MILLRACE_INVALID_COST', 'actualCost', cost, expected)
}

export function settledError(): MillraceError {
  const expected = 'one that is settled once, by commit or cancel or a refund of its decision'
  return new MillraceError('ERR_MILLRACE_SETTLED', 'reservation', 'a settled reservation', expected)
}

export function notReservedError(): MillraceError {
  const expected = 'one whose decision is allowed: a refusal has reserved nothing'
  return new MillraceError('ERR_MILLRACE_NOT_RESERVED', 'reservation', 'a refused reservation', expected)
}

export function invalidCostError(cost: unknown, option = 'cost'): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_COST', option, cost, 'an integer of 0 or more')
}

export function closedError(option = 'limiter'): MillraceError {
  return new MillraceError('ERR_MILLRACE_CLOSED', option, 'a closed limiter', 'an open limiter')
}

/** @throws MillraceError `ERR_MILLRACE_CLOSED` */
export function checkOpen({ isOpen }: { readonly isOpen: boolean }, option?: string): void {
  if (!isOpen) throw closedError(option)
}

/** The error of a `wait()` without an end: the cost is above the limit of a rule, or the key is blocked. */
export function neverAdmittedError(cost: number, rules: readonly MostAtOnce[]): MillraceError {
  const below = rules.find(({ limit }) => cost > limit)
  const name = below !== undefined && rules.length > 1 ? ` of '${below.name}'` : ''
  const [option, value, expected] =
    below !== undefined
      ? ['cost', cost, `at most the limit${name}, ${below.limit}`]
      : ['key', 'a key that is blocked for ever', 'a key that can be admitted later']
  return new MillraceError('ERR_MILLRACE_NEVER_ADMITTED', option as string, value, expected as string)
}

/** Whether a limiter has returned it, this one or another. */
export function isDecision(what: unknown): boolean {
  if (typeof what !== 'object' || what === null) return false
  try {
    return 'retryAfterMs' in what || 'rules' in what
  } catch {
    return true // a proxy that throws: of a decision, as far as can be known
  }
}

export function foreignDecisionError(decision: unknown, of = 'limiter'): MillraceError {
  const expected = `a decision of this ${of}`
  return new MillraceError('ERR_MILLRACE_FOREIGN_DECISION', 'decision', decision, expected)
}

export function checkRemaining(remaining: unknown): asserts remaining is boolean {
  if (typeof remaining === 'boolean') return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'remaining', remaining, 'a boolean')
}

export function checkSignal(signal: unknown): asserts signal is Signal | undefined {
  if (signal === undefined || isSignal(signal)) return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'signal', signal, 'an AbortSignal')
}

/** Reading `aborted` of an object that only inherits from a signal throws. */
function isSignal(signal: unknown): boolean {
  try {
    return signal instanceof AbortSignal && typeof signal.aborted === 'boolean'
  } catch {
    return false
  }
}

/** The options of one decision, read once. */
export interface OwnOptions {
  /** The limit of this call; undefined: that of the rules. */
  readonly limit: CallLimit | undefined
  readonly signal: Signal | undefined
}

/** Reads and checks the options of one decision. `known` names them. */
export function checkCallOptions(
  options: CheckOptions & CallOptions,
  known: readonly string[],
  rules: RuleNames,
): OwnOptions {
  checkOptions(options, known)
  const { limit, signal } = options
  checkSignal(signal)
  return { limit: checkCallLimit(limit, rules), signal }
}

/** Copies and checks the option `limit` of a call. The limits are rounded down to whole units. */
export function checkCallLimit(
  limit: unknown,
  { names, units, ranges }: RuleNames,
  option = 'limit',
): CallLimit | undefined {
  if (limit === undefined) return undefined
  if (names.length === 1) return checkOwnLimit(limit, option, units[0], ranges[0]!)
  if (typeof limit !== 'object' || limit === null) {
    const expected = `an object with limits by the names of rules, such as { ${names[0]}: 20 }`
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, limit, expected)
  }
  checkOptions(limit, names, option)
  return names.map((name, i) => {
    const own = (limit as Record<string, unknown>)[name]
    return own === undefined ? undefined : checkOwnLimit(own, `${option}.${name}`, units[i], ranges[i]!)
  })
}

function checkOwnLimit(limit: unknown, option: string, unit: number | undefined, range: LimitRange): number {
  if (unit === undefined && range.most === MAX_LIMIT && isLimit(limit)) return limit
  const uncounted = uncountedLimitIn(limit)
  if (uncounted !== undefined) return uncounted
  return checkOtherLimit(unit, limit, range, option, 'ERR_MILLRACE_INVALID_OPTION') * (unit ?? 1)
}

export function checkWaitOptions(
  options: WaitOptions,
  rules: RuleNames,
): OwnOptions & { readonly cost: number } {
  checkOptions(options, ['cost', 'signal', 'limit'])
  const { cost = 1 } = options
  const { limit, signal } = options
  checkSignal(signal)
  checkCost(cost)
  return { cost, limit: checkCallLimit(limit, rules), signal }
}

/** The most that a key may use at once by a rule. */
export type MostAtOnce = Pick<LimiterRule, 'name' | 'limit'>

/** The most that a key may use at once in one call: of a bucket its tokens, like the limits of the call. */
export function rulesWithin(rules: readonly LimiterRule[], limit: CallLimit | undefined): MostAtOnce[] {
  const limits = typeof limit === 'object' ? limit : [limit]
  return rules.map((rule, i) => ({ name: rule.name, limit: limits[i] ?? rule.burst ?? rule.limit }))
}

/** Returns the index of the rule of this name. */
export function checkRuleName(name: unknown, names: readonly string[]): number {
  const index = names.indexOf(name as string)
  if (index >= 0) return index
  const known = names.map((each) => `'${each}'`).join(', ')
  const expected = names.length === 1 ? known : `one of ${known}`
  throw new MillraceError('ERR_MILLRACE_INVALID_RULE', 'rule', name, expected)
}

/** Returns the index of the rule that `usage` reads: the first one unless the options name another. */
export function checkUsageRule(options: UsageOptions, names: readonly string[]): number {
  checkOptions(options, ['rule'])
  const { rule } = options
  return rule === undefined ? 0 : checkRuleName(rule, names)
}

/** A change of a rule that has been checked. */
export interface OwnChange {
  /** The new limit, in whole units; undefined: the present one. */
  readonly limit: number | undefined
  /** The new window and its number of buckets, if either is new. */
  readonly window: CountedWindow | undefined
}

const CHANGES = ['limit', 'window', 'granularity']

/** A rule at present, for its change. */
export interface PresentOptions extends CountedWindow, Pick<Rule, 'limit' | 'algorithm' | 'align' | 'rate'> {
  readonly unit?: number | undefined
  readonly range: LimitRange
  /** Of the cells, which were made for other windows; undefined: there are none. */
  readonly shape?: Shape
}

/** Reads and checks the change of a rule. */
export function checkUpdate(change: RuleChange, present: PresentOptions): OwnChange {
  const { limit, window, granularity } = change ?? {}
  const { unit, range, shape } = present
  if (typeof change === 'object' && change !== null) checkOptions(change, CHANGES, 'change')
  if (limit === undefined && window === undefined && granularity === undefined) limitIn(unit, limit) // throws
  const own =
    limit === undefined
      ? undefined
      : checkOtherLimit(unit, limit, window === undefined ? range : { ...range, most: range.mostAnew })
  if (window === undefined && granularity === undefined) return { limit: own, window: undefined }
  const changed = checkChangedWindow(window, granularity, { ...present, limit: own ?? present.limit })
  if (shape !== undefined && !canHold(shape, changed.buckets)) throw cellsError(granularity, changed, shape)
  return { limit: own, window: changed }
}

/** The error of a window that the cells of a limiter have no room for. */
function cellsError(
  granularity: Duration | undefined,
  { windowMs, buckets }: { readonly windowMs: number; readonly buckets: number },
  { leastBuckets, mostBuckets }: Shape,
): MillraceError {
  const most = `a window of ${leastBuckets} to ${mostBuckets} buckets, and not ${buckets}`
  const remedy =
    buckets > mostBuckets
      ? `the finest granularity is ${granularityFrom(windowMs / mostBuckets, windowMs)}`
      : `the coarsest granularity is ${formatDuration(windowMs / leastBuckets)}`
  const expected = `one that the cells of this limiter have room for: ${most}; ${remedy}. A new limiter may have it`
  return new MillraceError('ERR_MILLRACE_INVALID_RULE', 'granularity', granularity, expected)
}

/**
 * Returns the milliseconds of `usage`, at most `windowMs`. A bucket with a burst has two windows: `windowMs`, in which it
 * fills up, and `ownMs` of its rule. The longer one may be asked for.
 * @throws MillraceError `ERR_MILLRACE_INVALID_DURATION`
 */
export function usageMs(lastMs: Duration | undefined, windowMs: number, ownMs: number): number {
  if (lastMs === undefined) return windowMs
  const ms = parseDuration(lastMs, 'lastMs')
  const mostMs = Math.max(windowMs, ownMs)
  if (ms <= mostMs * (1 + 2 ** -40)) return Math.min(ms, windowMs) // a window of a bucket is rounded
  const expected = `at most the window, ${formatDuration(mostMs)}`
  throw new MillraceError('ERR_MILLRACE_INVALID_DURATION', 'lastMs', lastMs, expected)
}

/** Returns the milliseconds of a block; `Infinity` for ever. */
export function blockMs(ms: Duration): number {
  return ms === Number.POSITIVE_INFINITY ? ms : parseDuration(ms, 'ms')
}
