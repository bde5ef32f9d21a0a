import { checkOptions } from '../api/checks.js'
import type { DecisionSource } from '../core/decision-source.js'
import type { Duration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import { checkPrefix } from '../remote/key-names.js'
import { checkOutageOptions, type OnOutage, type OutagePlan } from '../remote/outage-options.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import { rulesOfValues } from '../values/rules-of-values.js'
import type { Values } from '../values/values.js'
import { checkSkew } from '../values/values-store.js'

/** The options of {@link createBackendLimiter} beside the rules. */
export interface BackendOptions {
  /** The store. It belongs to you: the limiter does not close it. */
  values: Values
  /** The name of the store, of decisions and in errors: 1 to 32 small letters, digits and hyphens, such as `'sqlite'`. */
  source: DecisionSource
  /**
   * The beginning of all names of keys in the store: 1 to 64 characters without braces. Limiters with the same prefix
   * and rules share their counts. Each set of rules needs a prefix of its own.
   */
  prefix: string
  /**
   * How long a call may take until it is decided without the store: 1 ms to a minute.
   * @default '50ms'
   */
  deadline?: Duration
  /**
   * What `check` does while the store does not answer. The decision's `source` is then `'outage'` or `'local'`.
   * - `'closed'`: it refuses.
   * - `'open'`: it allows everything, and counts nothing.
   * - `'local'`: this process decides alone, by its share of the limit (see `nodes`). Afterwards it reports to the
   *   store what it has admitted.
   * @default 'closed'
   */
  onOutage?: OnOutage
  /** For `'local'`: the number of processes that share the limit, at its highest. Each rule's limit must be as large. */
  nodes?: number
  /**
   * The number of keys whose charges this process knows: it sends them again if the store has lost a value. For
   * `'local'` also the number of keys that it can count.
   * @default 100_000
   */
  maxKeys?: number
  /**
   * Whether this process remembers a refusal until its `retryAfterMs`, and refuses such requests itself.
   * @default false
   */
  rememberRefusals?: boolean
  /**
   * By how much the clocks of processes may differ: 0 to a minute, in whole milliseconds. What is charged counts for so
   * much longer, so that a process whose clock is ahead admits nothing too early. A store with a clock of its own (its
   * method `now`) needs none: then it is 0.
   * @default '100ms', or 0 if the store has a clock
   */
  clockSkew?: Duration
  /** @internal A test's clock, in milliseconds from 1 on. */
  testTime?: () => number
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
export interface BackendPlan extends OutagePlan {
  readonly values: Values
  readonly source: DecisionSource
  readonly prefix: string
  readonly rules: readonly RemoteRule[]
  readonly skewMs: number
  readonly testTime: (() => number) | undefined
}

const OWN_OPTIONS = [
  'values',
  'source',
  'prefix',
  'deadline',
  'onOutage',
  'nodes',
  'maxKeys',
  'rememberRefusals',
  'clockSkew',
  'testTime',
  'rules',
]
/** Sources that mean something else: see `DecisionSource`. */
const TAKEN: readonly string[] = ['redis', 'memcached', 'local', 'outage', 'config']

/** @throws MillraceError naming the option, the value and what would be right */
export function checkBackendOptions(options: BackendLimiterOptions | BackendRulesOptions): BackendPlan {
  checkOptions(options, [...OWN_OPTIONS, ...RULE_OPTIONS])
  const { values, source, prefix, clockSkew, testTime } = options
  checkValues(values)
  if (typeof source !== 'string' || !/^[a-z0-9-]{1,32}$/.test(source) || TAKEN.includes(source))
    throw invalid(
      'source',
      source,
      `1 to 32 small letters, digits and hyphens, and none of ${TAKEN.join(', ')}`,
    )
  checkPrefix(prefix)
  const rules = rulesOfValues(options, `'${source}'`)
  const skewMs = clockSkew === undefined && values.now !== undefined ? 0 : checkSkew(clockSkew)
  return { values, source, prefix, rules, skewMs, testTime, ...checkOutageOptions(options, rules) }
}

function checkValues(values: unknown): void {
  const { read, swap, now } = (values ?? {}) as Partial<Values>
  const isClock = now === undefined || typeof now === 'function'
  if (typeof read === 'function' && typeof swap === 'function' && isClock) return
  throw invalid('values', values, 'a store with the methods read and swap, and perhaps now')
}
