import { checkOptions } from '../checks.js'
import type { Duration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { checkRule, checkRules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import { checkStoredRules } from './counting-rule.js'
import type { IoredisClient } from './ioredis.js'
import { checkPrefix } from './key-names.js'
import type { NodeRedisClient } from './node-redis.js'
import { checkOutageOptions, type OnOutage, type OutagePlan } from './outage-options.js'
import type { RemoteRule } from './remote-rule.js'

export type { OnOutage } from './outage-options.js'

/** The options of {@link createRedisLimiter} beside the rules. */
export interface RedisOptions {
  /**
   * A client of `ioredis` (one server, Sentinel or Cluster), of `iovalkey`, or of `redis` (one server). The limiter
   * connects as this client does, by a connection of its own that sends no command twice.
   */
  client: IoredisClient | NodeRedisClient
  /**
   * The beginning of all names of keys on Redis: 1 to 64 characters without braces. Limiters with the same prefix
   * and rules share their counts. Limiters with other rules need another prefix.
   */
  prefix: string
  /**
   * How long a call may take until it is decided without Redis: 1 ms to a minute.
   * @default '50ms'
   */
  deadline?: Duration
  /**
   * What `check` does while Redis does not answer. The decision's `source` is then `'outage'` or `'local'`.
   * - `'closed'`: it refuses. No limit is ever exceeded.
   * - `'open'`: it allows everything, and counts nothing.
   * - `'local'`: this process decides alone, by its share of the limit (see `nodes`). Afterwards it reports to
   *   Redis what it has admitted.
   * @default 'closed'
   */
  onOutage?: OnOutage
  /** For `'local'`: the number of processes that share the limit. Each rule's limit must be as large. */
  nodes?: number
  /**
   * The number of keys whose own charges this process knows: it sends them again if Redis has lost a key. For
   * `'local'`, also the number of keys that it can count.
   * @default 100_000
   */
  maxKeys?: number
  /**
   * Whether this process remembers a refusal until its `retryAfterMs`, and refuses such requests itself. That
   * spares Redis those who go on asking. A refund or `clear` by another process is then seen late.
   * @default false
   */
  rememberRefusals?: boolean
  /**
   * Whether the limiter makes a connection of its own. With `false` it uses the client itself, which must not
   * send commands twice or queue them while it is not connected.
   * @default true
   */
  ownConnection?: boolean
  /**
   * What a decision waits for.
   * - `'primary'`: the reply of the server.
   * - `'replica'`: also until a replica has the charge, by `WAIT 1` in the same pipeline. A decision that no replica
   *   has by the deadline is one without Redis (see `onOutage`). A failover then loses fewer charges, but it may lose
   *   some. Not for a Cluster.
   * @default 'primary'
   */
  durability?: 'primary' | 'replica'
  /**
   * For `algorithm: 'sliding-log'`: whether to decide by `WATCH`, a read and `MULTI`/`EXEC` instead of a script, for
   * servers that run none. If another process changes a key meanwhile, the call reads again, until its deadline:
   * `stats().retries` counts that. It takes two round trips, up to four more connections, and is slow where many
   * processes use one key. Not for a Cluster, and not with `ownConnection: false`.
   * @default false
   */
  optimistic?: boolean
  /** @internal A test's clock, in milliseconds from 1 on. */
  testTime?: () => number
}

/** The options of {@link createRedisLimiter} for one rule. */
export interface RedisLimiterOptions extends RedisOptions, RuleOptions {
  rules?: undefined
}

/** The options of {@link createRedisLimiter} for several rules, all or nothing. */
export interface RedisRulesOptions extends RedisOptions {
  /** The rules: 1 to 16, each with a `name` of its own. A request is admitted if all rules admit it. */
  rules: readonly RuleOptions[]
}

/** The options, checked. */
export interface RedisPlan extends OutagePlan {
  readonly client: unknown
  readonly prefix: string
  readonly rules: readonly RemoteRule[]
  readonly ownConnection: boolean
  readonly isReplicated: boolean
  readonly isOptimistic: boolean
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
  'ownConnection',
  'durability',
  'optimistic',
  'testTime',
  'rules',
]

/** @throws MillraceError naming the option, the value and what would be right */
export function checkRedisOptions(options: RedisLimiterOptions | RedisRulesOptions): RedisPlan {
  checkOptions(options, [...OWN_OPTIONS, ...RULE_OPTIONS])
  if ((options as { clock?: unknown }).clock !== undefined)
    throw invalid('clock', 'a clock', 'the clock of Redis')
  const { client, prefix, ownConnection = true, durability = 'primary' } = options
  const { optimistic = false, testTime } = options
  checkPrefix(prefix)
  const rules = rulesOf(options)
  const outage = checkOutageOptions(options, rules)
  checkFlag(ownConnection, 'ownConnection')
  if (durability !== 'primary' && durability !== 'replica')
    throw invalid('durability', durability, "'primary' or 'replica'")
  checkFlag(optimistic, 'optimistic')
  if (optimistic) checkOptimistic(rules, ownConnection)
  return {
    client,
    prefix,
    rules,
    ownConnection,
    isReplicated: durability === 'replica',
    isOptimistic: optimistic,
    testTime,
    ...outage,
  }
}

function rulesOf(options: RedisLimiterOptions | RedisRulesOptions): readonly RemoteRule[] {
  if (options.rules === undefined) return checkStoredRules([checkRule(options as RuleOptions)], () => '')
  const beside = RULE_OPTIONS.find(
    (name) => (options as unknown as Record<string, unknown>)[name] !== undefined,
  )
  if (beside !== undefined) throw invalid(beside, 'an option of a rule', 'no such option beside rules')
  return checkStoredRules(checkRules(options.rules), (i) => `rules[${i}].`)
}

/** A transaction needs a connection for itself. */
function checkOptimistic(rules: readonly RemoteRule[], ownConnection: boolean): void {
  if (rules.some(({ rule }) => rule.algorithm !== 'sliding-log'))
    throw invalid('optimistic', true, "false: only algorithm: 'sliding-log' may have it")
  if (!ownConnection) throw invalid('ownConnection', false, 'true with optimistic: true')
}

function checkFlag(value: unknown, option: string): void {
  if (typeof value !== 'boolean') throw invalid(option, value, 'true or false')
}

function invalid(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
}
