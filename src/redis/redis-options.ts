import { checkObject } from '../api/checks.js'
import { type Duration, parseDuration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import { rulesGiven } from '../core/rule.js'
import type { RuleOptions } from '../core/rule-options.js'
import { checkStoredRule, kindOf } from '../remote/counting-rule.js'
import {
  checkRemoteNames,
  checkRemoteOptions,
  type RemoteOptions,
  type RemoteSettings,
} from '../remote/remote-options.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { IoredisClient } from './clients/ioredis-client.js'
import type { NodeRedisClient } from './clients/node-redis.js'
import type { NodeRedisCluster } from './clients/node-redis-cluster.js'
import type { NodeRedisSentinel } from './clients/node-redis-sentinel.js'
import { checkShards, type RedisShard, type ShardsPlan } from './shards/shards-option.js'
import { checkSplit, type Split, type SplitPlan } from './shards/split-option.js'
import { checkStoredRules } from './stored-rules.js'

export type { OnOutage, OutageChange } from '../remote/outage-watch.js'

/** The options of {@link createRedisLimiter} beside the rules. */
export interface RedisOptions extends RemoteOptions {
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
   * Who decides.
   * - `'strict'`: Redis, by one call for each decision.
   * - `'leased'`: this process, by units that Redis has granted it for a while, as long as it has some: in
   *   nanoseconds instead of a trip. The limit is as strict. It saves trips where a process asks for at least 3
   *   units of a key in a fifth of the window; other keys are decided as by `'strict'`, and so are rules
   *   that charge or allow what they refuse, several rules with different `unit`s, and requests with a limit of their
   *   own. Both modes may be used on the same keys. For sliding windows without `split`.
   *
   * A block, `clear`, or a smaller limit reaches processes that hold units within 0.4 of the window, or an hour if that
   * is less.
   * @default 'strict'
   * @example
   * ```ts
   * createRedisLimiter({ client, prefix: 'api', limit: 10_000, window: '1m', mode: 'leased' })
   * ```
   */
  mode?: 'strict' | 'leased'
  /**
   * For `algorithm: 'sliding-log'`: whether to decide by `WATCH`, a read and `MULTI`/`EXEC` instead of a script, for
   * servers that run none. If another process changes a key meanwhile, the call reads again, until its deadline:
   * `stats().retries` counts that. It takes two round trips, up to four more connections, and is slow where many
   * processes use one key. Not for a Cluster, and not with `ownConnection: false`.
   * @default false
   */
  optimistic?: boolean
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
export interface RedisPlan extends RemoteSettings {
  readonly client: unknown
  /** Instead of a client. */
  readonly shards: ShardsPlan | undefined
  readonly split: SplitPlan | undefined
  readonly ownConnection: boolean
  readonly otherKeysExpire: boolean
  readonly isReplicated: boolean
  readonly isOptimistic: boolean
  readonly isLeased: boolean
}

const OWN_OPTIONS = [
  'prefix',
  'client',
  'shards',
  'previousShards',
  'changeWithin',
  'split',
  'ownConnection',
  'otherKeysExpire',
  'durability',
  'optimistic',
  'mode',
]
const CHANGE_WITHIN_MS = 300_000

type ShardOption = 'client' | 'shards' | 'previousShards' | 'changeWithin'

/** @throws MillraceError naming the option, the value and what would be right */
export function checkRedisOptions(options: RedisLimiterOptions | RedisRulesOptions): RedisPlan {
  checkObject(options)
  if ('clock' in options) throw invalid('clock', options.clock, 'no such option: Redis has the clock')
  checkRemoteNames(options, OWN_OPTIONS)
  const { client, ownConnection = true, otherKeysExpire = false, durability = 'primary' } = options
  const { optimistic = false, shards, previousShards, changeWithin, split, mode = 'strict' } = options
  const rules = checkStoredRules(...rulesGiven(options))
  const remote = checkRemoteOptions(options, rules, 'redis')
  checkFlag(ownConnection, 'ownConnection')
  checkFlag(otherKeysExpire, 'otherKeysExpire')
  if (durability !== 'primary' && durability !== 'replica')
    throw invalid('durability', durability, "'primary' or 'replica'")
  checkFlag(optimistic, 'optimistic')
  if (optimistic) checkOptimistic(rules, ownConnection)
  if (mode !== 'strict') checkLeased(mode, rules, split)
  if (shards !== undefined) checkPacked(rules, 'shards', shards)
  if (split !== undefined) checkPacked(rules, 'split', split)
  return {
    client,
    shards: shardsOf({ client, shards, previousShards, changeWithin }),
    split: checkSplit(split, rules),
    ownConnection,
    otherKeysExpire,
    isReplicated: durability === 'replica',
    isOptimistic: optimistic,
    isLeased: mode === 'leased',
    ruleOn: (rule) => checkStoredRule(rule, '', 'Redis'),
    ...remote,
  }
}

/** Held units count until they come back: at the end of a fixed window, and in a bucket, they would not leave as others. */
function checkLeased(mode: unknown, rules: readonly RemoteRule[], split: unknown): void {
  if (mode !== 'leased') throw invalid('mode', mode, "'strict' or 'leased'")
  if (split !== undefined) throw invalid('mode', mode, "'strict' with split: leases do what it is for")
  const other = rules.find(({ rule }) => rule.algorithm !== 'sliding-window')
  if (other === undefined) return
  const expected = `'strict' with algorithm: '${other.rule.algorithm}': only sliding windows have leases`
  throw invalid('mode', mode, expected)
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
