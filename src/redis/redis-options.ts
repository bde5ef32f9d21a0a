import { checkObject, checkOptions } from '../api/checks.js'
import { type Duration, parseDuration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import { checkRule, checkRules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import { kindOf } from '../remote/counting-rule.js'
import { checkPrefix } from '../remote/key-names.js'
import { checkOutageOptions, type OnOutage, type OutagePlan } from '../remote/outage-options.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { IoredisClient } from './clients/ioredis-client.js'
import type { NodeRedisClient } from './clients/node-redis.js'
import type { NodeRedisCluster } from './clients/node-redis-cluster.js'
import type { NodeRedisSentinel } from './clients/node-redis-sentinel.js'
import { checkShards, type RedisShard, type ShardsPlan } from './shards/shards-option.js'
import { checkSplit, type Split, type SplitPlan } from './shards/split-option.js'
import { checkStoredRules } from './stored-rules.js'

export type { OnOutage } from '../remote/outage-options.js'

/** The options of {@link createRedisLimiter} beside the rules. */
export interface RedisOptions {
  /**
   * A client of `ioredis` (one server, Sentinel or Cluster), of `iovalkey`, or of `redis` (one server, or
   * `createCluster()` or `createSentinel()` of node-redis 6). The limiter connects as this client does, by a connection of its own that sends no command twice.
   */
  client?: IoredisClient | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel | undefined
  /**
   * Instead of `client`: several independent servers, 1 to 256, each with a part of the keys. A shard is a client, or
   * `{ name, client }`; without a name, it is named after the client's `host:port`. The names decide which keys a
   * server has (rendezvous hashing), the order does not matter. A Redis Cluster, which moves counts with its slots, is
   * better where there is one.
   */
  shards?: readonly RedisShard[]
  /**
   * The shards before a change, for a process that starts while a change is under way, or with it: keys that have moved
   * are charged at their old shard too, for a window, a granule, the deadline and `changeWithin`.
   */
  previousShards?: readonly RedisShard[]
  /**
   * For `shards`: the time in which all processes get a change of the list. If they take longer, keys that have moved
   * may be admitted beyond the limit.
   * @default '5m'
   */
  changeWithin?: Duration
  /**
   * Splits each key into this many parts, 1 to 1,024, or those keys that an object names: `{ '/search': 8 }`. A part has
   * its part of each limit, rounded down, and a request asks one at random, and another one if that refuses. So one key
   * is on several servers of a Cluster or of `shards`. It may be refused while other parts have units left.
   */
  split?: Split
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
  /**
   * For `'local'`: the number of processes that share the limit, at its highest. With more, the bound of an outage does
   * not hold. Each rule's limit must be as large. A cost above the share of this process is refused until Redis
   * answers again.
   */
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
   * Whether the server holds keys of others that expire, and may evict by a `maxmemory-policy` of `volatile-*`. Without
   * it such a server is refused, because counts expire, too: it may forget them whenever it is full. Evicted counts are
   * restored like lost ones, but while many are evicted, a limit may be exceeded many times over. So give the server
   * memory enough, or the counts a server of their own, with `noeviction`. `allkeys-*` is always refused.
   *
   * `ready` and each call reject with `ERR_MILLRACE_INVALID_OPTION`, option `maxmemory-policy`, as long as the server has
   * such a policy.
   * @default false
   * @example
   * ```ts
   * createRedisLimiter({ client, prefix: 'api', limit: 100, window: '1m', otherKeysExpire: true })
   * ```
   */
  otherKeysExpire?: boolean
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
  /** Instead of a client. */
  readonly shards: ShardsPlan | undefined
  readonly split: SplitPlan | undefined
  readonly prefix: string
  readonly rules: readonly RemoteRule[]
  readonly ownConnection: boolean
  readonly otherKeysExpire: boolean
  readonly isReplicated: boolean
  readonly isOptimistic: boolean
  readonly testTime: (() => number) | undefined
}

const OWN_OPTIONS = [
  'client',
  'shards',
  'previousShards',
  'changeWithin',
  'split',
  'prefix',
  'deadline',
  'onOutage',
  'nodes',
  'maxKeys',
  'rememberRefusals',
  'ownConnection',
  'otherKeysExpire',
  'durability',
  'optimistic',
  'rules',
]
const CHANGE_WITHIN_MS = 300_000

type ShardOption = 'client' | 'shards' | 'previousShards' | 'changeWithin'

/** @throws MillraceError naming the option, the value and what would be right */
export function checkRedisOptions(options: RedisLimiterOptions | RedisRulesOptions): RedisPlan {
  checkObject(options)
  const { testTime, ...known } = options
  if ('clock' in known) throw invalid('clock', known.clock, 'no such option: Redis has the clock')
  checkOptions(known, [...OWN_OPTIONS, ...RULE_OPTIONS])
  const { client, prefix, ownConnection = true, otherKeysExpire = false, durability = 'primary' } = options
  const { optimistic = false, shards, previousShards, changeWithin, split } = options
  checkPrefix(prefix)
  const rules = rulesOf(options)
  const outage = checkOutageOptions(options, rules)
  checkFlag(ownConnection, 'ownConnection')
  checkFlag(otherKeysExpire, 'otherKeysExpire')
  if (durability !== 'primary' && durability !== 'replica')
    throw invalid('durability', durability, "'primary' or 'replica'")
  checkFlag(optimistic, 'optimistic')
  if (optimistic) checkOptimistic(rules, ownConnection)
  if (shards !== undefined) checkPacked(rules, 'shards', shards)
  if (split !== undefined) checkPacked(rules, 'split', split)
  return {
    client,
    shards: shardsOf({ client, shards, previousShards, changeWithin }),
    split: checkSplit(split, rules),
    prefix,
    rules,
    ownConnection,
    otherKeysExpire,
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

/** A key that moves, or is split, is charged at several places, which these two can't give back. */
function checkPacked(rules: readonly RemoteRule[], option: string, value: unknown): void {
  const other = rules.find(({ rule }) => kindOf(rule) !== 'packed')
  if (other === undefined) return
  throw invalid(option, value, `no such option with algorithm: '${other.rule.algorithm}'`)
}

function shardsOf(options: Readonly<Record<ShardOption, unknown>>): ShardsPlan | undefined {
  const { client, shards, previousShards, changeWithin } = options
  if (shards === undefined) {
    if (previousShards !== undefined)
      throw invalid('previousShards', previousShards, 'no such option without shards')
    if (changeWithin !== undefined)
      throw invalid('changeWithin', changeWithin, 'no such option without shards')
    return undefined
  }
  if (client !== undefined) throw invalid('client', client, 'no client beside shards')
  return {
    shards: checkShards(shards, 'shards'),
    previousShards: previousShards === undefined ? [] : checkShards(previousShards, 'previousShards'),
    changeWithinMs: parseDuration(changeWithin ?? CHANGE_WITHIN_MS, 'changeWithin'),
  }
}

function checkFlag(value: unknown, option: string): void {
  if (typeof value !== 'boolean') throw invalid(option, value, 'true or false')
}
