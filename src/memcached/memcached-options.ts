import { checkOptions } from '../api/checks.js'
import type { Duration } from '../core/duration.js'
import { invalid, MillraceError } from '../core/errors.js'
import { checkRule, checkRules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import { checkPrefix } from '../remote/key-names.js'
import { checkOutageOptions, type OnOutage, type OutagePlan } from '../remote/outage-options.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import { rulesOfValues } from '../values/rules-of-values.js'
import { checkSkew } from '../values/values-store.js'
import { checkMemcacheClient, type MemcacheClient } from './client.js'
import { checkMemcachedRule, type MemcachedRule, withAlgorithm } from './memcached-rule.js'

/** The options of {@link createMemcachedLimiter} beside the rules. */
export interface MemcachedOptions {
  /**
   * A client of the package `memcache`, without SASL and TLS. The limiter connects to its nodes by connections of its
   * own, one for each. With several nodes, the client's `hash` says which one has a key.
   */
  client: MemcacheClient
  /**
   * The beginning of all names of keys on Memcached: 1 to 64 characters without braces. Limiters with the same prefix
   * and rules share their counts.
   */
  prefix: string
  /**
   * How long a call may take until it is decided without Memcached: 1 ms to a minute.
   * @default '50ms'
   */
  deadline?: Duration
  /**
   * What `check` does while Memcached does not answer. The decision's `source` is then `'outage'` or `'local'`.
   * - `'closed'`: it refuses.
   * - `'open'`: it allows everything, and counts nothing.
   * - `'local'`: this process decides alone, by its share of the limit (see `nodes`). Afterwards it reports to
   *   Memcached what it has admitted.
   * @default 'closed'
   */
  onOutage?: OnOutage
  /**
   * For `'local'`: the number of processes that share the limit, at its highest. Each rule's limit must be as large. A
   * cost above the share of this process is refused until Memcached answers again.
   */
  nodes?: number
  /**
   * For `'local'`: the number of keys that this process can count. With `strict: true` also the number of keys whose
   * charges it knows: it sends them again if Memcached has lost a value.
   * @default 100_000
   */
  maxKeys?: number
  /**
   * Whether this process remembers a refusal until its `retryAfterMs`, and refuses such requests itself. That
   * spares Memcached those who go on asking. A refund or `clear` by another process is then seen late.
   * @default false
   */
  rememberRefusals?: boolean
  /**
   * Whether no more than the limit is admitted, in any window, by any number of processes. Each key is one value then,
   * which is read, changed, and written by `cas` if it is still the same: a decision takes two round trips, and more
   * while others change the key. Rules may have any algorithm and its options, but no `edge: 'smooth'`.
   * @default false: two counters for each rule, one round trip, and nearly twice the limit at worst
   */
  strict?: boolean
  /**
   * With `strict: true`: by how much the clocks of processes may differ, 0 to a minute, in whole milliseconds. What is
   * charged counts for so much longer, so that a process whose clock is ahead admits nothing too early.
   * @default '100ms'
   */
  clockSkew?: Duration
  /** @internal A test's clock, in milliseconds from 1 on. */
  testTime?: () => number
}

/** The options of {@link createMemcachedLimiter} for one rule. */
export interface MemcachedLimiterOptions extends MemcachedOptions, MemcachedRule {
  rules?: undefined
}

/** The options of {@link createMemcachedLimiter} for several rules, all or nothing. */
export interface MemcachedRulesOptions extends MemcachedOptions {
  /** The rules: 1 to 16, each with a `name` of its own. A request is admitted if all rules admit it. */
  rules: readonly MemcachedRule[]
}

/** The options, checked. */
export interface MemcachedPlan extends OutagePlan {
  readonly client: MemcacheClient
  readonly prefix: string
  readonly rules: readonly RemoteRule[]
  /** With `strict: true`. */
  readonly skewMs: number | undefined
  readonly testTime: (() => number) | undefined
}

const OWN_OPTIONS = [
  'client',
  'prefix',
  'deadline',
  'onOutage',
  'nodes',
  'maxKeys',
  'rememberRefusals',
  'strict',
  'clockSkew',
  'testTime',
  'rules',
]

/** @throws MillraceError naming the option, the value and what would be right */
export function checkMemcachedOptions(
  options: MemcachedLimiterOptions | MemcachedRulesOptions,
): MemcachedPlan {
  checkOptions(options, [...OWN_OPTIONS, ...RULE_OPTIONS])
  const { client, prefix, strict = false, clockSkew, testTime } = options
  checkMemcacheClient(client)
  checkPrefix(prefix)
  if (typeof strict !== 'boolean') throw invalid('strict', strict, 'true or false')
  if (!strict && clockSkew !== undefined)
    throw invalid('clockSkew', clockSkew, 'no such option without strict: true')
  const rules = strict ? rulesOfValues(options, 'Memcached') : rulesOf(options)
  const skewMs = strict ? checkSkew(clockSkew) : undefined
  return { client, prefix, rules, skewMs, testTime, ...checkOutageOptions(options, rules) }
}

function rulesOf(options: MemcachedLimiterOptions | MemcachedRulesOptions): readonly RemoteRule[] {
  const { rules } = options as { rules?: unknown }
  if (rules === undefined) return [checkMemcachedRule(checkRule(withAlgorithm(options) as RuleOptions))]
  const given = options as unknown as Record<string, unknown>
  const beside = RULE_OPTIONS.find((name) => given[name] !== undefined)
  if (beside !== undefined) {
    const expected = 'no such option beside rules'
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', beside, 'an option of a rule', expected)
  }
  const checked = checkRules(Array.isArray(rules) ? rules.map(withAlgorithm) : rules)
  return checked.map((rule, i) => checkMemcachedRule(rule, `rules[${i}].`))
}
