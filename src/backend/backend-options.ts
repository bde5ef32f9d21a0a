import type { DecisionSource } from '../core/decision-source.js'
import type { Duration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import type { Rule } from '../core/rule.js'
import type { RuleOptions } from '../core/rule-options.js'
import { checkStoredRule } from '../remote/counting-rule.js'
import {
  checkRemoteNames,
  checkRemoteOptions,
  type RemoteOptions,
  type RemoteSettings,
} from '../remote/remote-options.js'
import { rulesOfValues } from '../values/rules-of-values.js'
import type { Values } from '../values/values.js'
import { checkSkew } from '../values/values-store.js'

/** The options of {@link createBackendLimiter} beside the rules. */
export interface BackendOptions extends RemoteOptions {
  /** The store. It belongs to you: the limiter does not close it. */
  values: Values
  /** The name of the store, of decisions and in errors: 1 to 32 small letters, digits and hyphens, such as `'sqlite'`. */
  source: DecisionSource
  /**
   * By how much the clocks of processes may differ: 0 to a minute, in whole milliseconds. What is charged counts for so
   * much longer, so that a process whose clock is ahead admits nothing too early. A store with a clock of its own (its
   * method `now`) needs none: then it is 0.
   * @default '100ms', or 0 if the store has a clock
   */
  clockSkew?: Duration
}

/** The options of {@link createBackendLimiter} for one rule. */
export interface BackendLimiterOptions extends BackendOptions, RuleOptions {
  rules?: undefined
}

/** The options of {@link createBackendLimiter} for several rules, all or nothing. */
export interface BackendRulesOptions extends BackendOptions {
  /** The rules: 1 to 16, each with a `name` of its own. A request is admitted if all rules admit it. */
  rules: readonly RuleOptions[]
}

/** The options, checked. */
export interface BackendPlan extends RemoteSettings {
  readonly values: Values
  readonly source: DecisionSource
  readonly skewMs: number
}

const OWN_OPTIONS = ['prefix', 'values', 'source', 'clockSkew']
/** Sources that mean something else: see `DecisionSource`. */
const TAKEN: readonly string[] = ['redis', 'memcached', 'service', 'local', 'outage', 'config']

/** @throws MillraceError naming the option, the value and what would be right */
export function checkBackendOptions(options: BackendLimiterOptions | BackendRulesOptions): BackendPlan {
  checkRemoteNames(options, OWN_OPTIONS)
  const { values, source, clockSkew } = options
  checkValues(values)
  if (typeof source !== 'string' || !/^[a-z0-9-]{1,32}$/.test(source) || TAKEN.includes(source))
    throw invalid(
      'source',
      source,
      `1 to 32 small letters, digits and hyphens, and none of ${TAKEN.join(', ')}`,
    )
  const rules = rulesOfValues(options, `'${source}'`)
  const skewMs = clockSkew === undefined && values.now !== undefined ? 0 : checkSkew(clockSkew)
  const ruleOn = (rule: Rule) => checkStoredRule(rule, '', `'${source}'`)
  return { values, source, skewMs, ruleOn, ...checkRemoteOptions(options, rules, source) }
}

function checkValues(values: unknown): void {
  const { read, swap, now } = (values ?? {}) as Partial<Values>
  const isClock = now === undefined || typeof now === 'function'
  if (typeof read === 'function' && typeof swap === 'function' && isClock) return
  throw invalid('values', values, 'a store with the methods read and swap, and perhaps now')
}
