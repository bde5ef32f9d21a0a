// `millrace/redis`: limiters whose counts are on Redis or Valkey.
import type { AsyncLimiter } from '../api/async-limiter.js'
import { configuredRemote } from '../policies/on-servers.js'
import type { ConfigOptions } from '../policies/options.js'
import { RedisLimiter } from './redis-limiter.js'
import {
  checkRedisOptions,
  type RedisLimiterOptions,
  type RedisOptions,
  type RedisRulesOptions,
} from './redis-options.js'

export type { WithoutStore } from '../core/decision-counts.js'
export type { DecisionSource } from '../core/decision-source.js'
export type { Latency } from '../core/latency.js'
export type { RedisStats, ShardStats } from '../remote/remote-statistics.js'
export type { LeaseStats } from '../remote/remote-store.js'
export type { NodeRedisCluster } from './clients/node-redis-cluster.js'
export type { NodeRedisSentinel } from './clients/node-redis-sentinel.js'
export type { RedisLimiter } from './redis-limiter.js'
export type {
  OnOutage,
  OutageChange,
  RedisLimiterOptions,
  RedisOptions,
  RedisRulesOptions,
} from './redis-options.js'
export type { RedisShard, ShardClient } from './shards/shards-option.js'
export type { Split } from './shards/split-option.js'

/** The options of {@link createRedisLimiter} with a configuration store. */
export interface RedisConfigLimiterOptions extends RedisOptions, ConfigOptions {}

/**
 * Creates a limiter on Redis or Valkey that takes the rules of each key from a configuration store. Policies with other
 * windows than the default count under names and by connections of their own.
 * @param options the client, a prefix of at most 55 characters, the store, and the default
 * @returns an {@link AsyncLimiter}. A key that counts in another window than before is charged there for what it has
 * used, but not by calls of other processes at that moment
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import { redisConfig } from 'millrace/config/redis'
 * import { createRedisLimiter } from 'millrace/redis'
 *
 * const client = new Redis(process.env.REDIS_URL, { lazyConnect: true })
 * const config = redisConfig({ client })
 * const limiter = createRedisLimiter({ client, prefix: 'api', config, default: { limit: 100, window: '1m' } })
 * console.log((await limiter.check('user:42')).limit)
 * ```
 */
export function createRedisLimiter(options: RedisConfigLimiterOptions): AsyncLimiter
/**
 * Creates a limiter whose counts are on Redis or Valkey, so that one limit holds for all processes and machines
 * that use the same server, prefix and rules. Redis decides, by its own clock, in one step for each call.
 * @param options the client, a prefix, the rules, and what happens while Redis does not answer
 * @returns an {@link AsyncLimiter}. `pack` and `share` are not possible; `update` changes rules in this process
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import { createRedisLimiter } from 'millrace/redis'
 *
 * const client = new Redis(process.env.REDIS_URL, { lazyConnect: true })
 * const limiter = createRedisLimiter({ client, prefix: 'api', limit: 100, window: '1m' })
 * const decision = await limiter.check('user:42')
 * if (!decision.allowed) console.log(decision.source, decision.retryAfterSeconds)
 * ```
 */
export function createRedisLimiter(options: RedisLimiterOptions | RedisRulesOptions): RedisLimiter
export function createRedisLimiter(
  options: RedisLimiterOptions | RedisRulesOptions | RedisConfigLimiterOptions,
): AsyncLimiter {
  if ((options as Partial<RedisConfigLimiterOptions>)?.config === undefined)
    return new RedisLimiter(checkRedisOptions(options as RedisLimiterOptions))
  return configuredRemote<RedisLimiterOptions>(options as RedisConfigLimiterOptions, {
    check: checkRedisOptions,
    make: (own) => new RedisLimiter(checkRedisOptions(own)),
  })
}
