import type { Duration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import { checkRule, type Rule, rulesGiven } from '../core/rule.js'
import { checkStoredRule } from '../remote/counting-rule.js'
import {
  checkRemoteNames,
  checkRemoteOptions,
  type RemoteOptions,
  type RemoteSettings,
} from '../remote/remote-options.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import { rulesOfValues } from '../values/rules-of-values.js'
import { checkSkew } from '../values/values-store.js'
import { checkMemcacheClient, type MemcacheClient } from './client.js'
import { checkMemcachedRule, type MemcachedRule, withAlgorithm } from './memcached-rule.js'

/** The options of {@link createMemcachedLimiter} beside the rules. */
export interface MemcachedOptions extends RemoteOptions {
  /**
   * A client of the package `memcache`, without SASL and TLS. The limiter connects to its nodes by connections of its
   * own, one for each. With several nodes, the client's `hash` says which one has a key.
   */
  client: MemcacheClient
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
export interface MemcachedPlan extends RemoteSettings {
  readonly client: MemcacheClient
  /** With `strict: true`. */
  readonly skewMs: number | undefined
}

const OWN_OPTIONS = ['prefix', 'client', 'strict', 'clockSkew']

/** @throws MillraceError naming the option, the value and what would be right */
export function checkMemcachedOptions(
  options: MemcachedLimiterOptions | MemcachedRulesOptions,
): MemcachedPlan {
  checkRemoteNames(options, OWN_OPTIONS)
  const { client, strict = false, clockSkew } = options
  checkMemcacheClient(client)
  if (typeof strict !== 'boolean') throw invalid('strict', strict, 'true or false')
  if (!strict && clockSkew !== undefined)
    throw invalid('clockSkew', clockSkew, 'no such option without strict: true')
  const rules = strict ? rulesOfValues(options, 'Memcached') : rulesOf(options)
  const skewMs = strict ? checkSkew(clockSkew) : undefined
  const ruleOn = (rule: Rule) => (strict ? checkStoredRule(rule, '', 'Memcached') : checkMemcachedRule(rule))
  return { client, skewMs, ruleOn, ...checkRemoteOptions(options, rules, 'memcached') }
}

function rulesOf(options: object): readonly RemoteRule[] {
  const [rules, pathOf] = rulesGiven(options, (own, path) => checkRule(withAlgorithm(own), path))
  return rules.map((rule, i) => checkMemcachedRule(rule, pathOf(i)))
}
