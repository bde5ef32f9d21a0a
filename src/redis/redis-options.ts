import { checkOptions } from '../checks.js'
import { type Duration, parseDuration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { checkRule, checkRules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import type { IoredisClient } from './ioredis-client.js'
import { checkPrefix } from './key-names.js'
import type { NodeRedisClient } from './node-redis.js'
import { checkRemoteRule, type RemoteRule } from './remote-rule.js'

/** What a limiter does while Redis does not answer. */
export type OnOutage = 'closed' | 'open' | 'local'

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
export interface RedisPlan {
  readonly client: unknown
  readonly prefix: string
  readonly rules: readonly RemoteRule[]
  readonly deadlineMs: number
  readonly onOutage: OnOutage
  readonly nodes: number
  readonly maxKeys: number
  readonly rememberRefusals: boolean
  readonly ownConnection: boolean
  readonly isReplicated: boolean
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
  'testTime',
  'rules',
]
const OUTAGES: readonly unknown[] = ['closed', 'open', 'local'] satisfies OnOutage[]
const LONGEST_DEADLINE_MS = 60_000

/** @throws MillraceError naming the option, the value and what would be right */
export function checkRedisOptions(options: RedisLimiterOptions | RedisRulesOptions): RedisPlan {
  checkOptions(options, [...OWN_OPTIONS, ...RULE_OPTIONS])
  if ((options as { clock?: unknown }).clock !== undefined)
    throw invalid('clock', 'a clock', 'the clock of Redis')
  const { client, prefix, deadline = 50, onOutage = 'closed', nodes, maxKeys = 100_000 } = options
  const { rememberRefusals = false, ownConnection = true, durability = 'primary', testTime } = options
  checkPrefix(prefix)
  const rules = rulesOf(options)
  const deadlineMs = parseDuration(deadline, 'deadline')
  if (deadlineMs < 1 || deadlineMs > LONGEST_DEADLINE_MS)
    throw invalid('deadline', deadline, 'a duration of 1 ms to a minute')
  if (!OUTAGES.includes(onOutage)) throw invalid('onOutage', onOutage, "'closed', 'open' or 'local'")
  if (nodes !== undefined && !(Number.isInteger(nodes) && nodes >= 1))
    throw invalid('nodes', nodes, 'an integer of 1 or more')
  if (!(Number.isInteger(maxKeys) && maxKeys >= 1))
    throw invalid('maxKeys', maxKeys, 'an integer of 1 or more')
  if (onOutage === 'local') checkShares(rules, nodes)
  checkFlag(rememberRefusals, 'rememberRefusals')
  checkFlag(ownConnection, 'ownConnection')
  if (durability !== 'primary' && durability !== 'replica')
    throw invalid('durability', durability, "'primary' or 'replica'")
  return {
    client,
    prefix,
    rules,
    deadlineMs,
    onOutage,
    nodes: nodes ?? 1,
    maxKeys,
    rememberRefusals,
    ownConnection,
    isReplicated: durability === 'replica',
    testTime,
  }
}

function rulesOf(options: RedisLimiterOptions | RedisRulesOptions): readonly RemoteRule[] {
  if (options.rules === undefined) return [checkRemoteRule(checkRule(options as RuleOptions))]
  const beside = RULE_OPTIONS.find(
    (name) => (options as unknown as Record<string, unknown>)[name] !== undefined,
  )
  if (beside !== undefined) throw invalid(beside, 'an option of a rule', 'no such option beside rules')
  return checkRules(options.rules).map((rule, i) => checkRemoteRule(rule, `rules[${i}].`))
}

/** Every process needs at least one unit of each limit. */
function checkShares(rules: readonly RemoteRule[], nodes: number | undefined): void {
  if (nodes === undefined) throw invalid('nodes', nodes, "the number of processes, for onOutage: 'local'")
  const small = rules.find(({ rule }) => rule.limit < nodes)
  if (small === undefined) return
  const expected = `at most ${small.rule.limit}, the limit of '${small.rule.name}': each process needs a share of it`
  throw invalid('nodes', nodes, expected)
}

function checkFlag(value: unknown, option: string): void {
  if (typeof value !== 'boolean') throw invalid(option, value, 'true or false')
}

function invalid(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
}
