// `millrace/memcached`: limiters whose counts are on Memcached.
import type { AsyncLimiter } from '../api/async-limiter.js'
import { configuredRemote } from '../policies/on-servers.js'
import type { ConfigOptions } from '../policies/options.js'
import { MemcachedLimiter } from './memcached-limiter.js'
import {
  checkMemcachedOptions,
  type MemcachedLimiterOptions,
  type MemcachedOptions,
  type MemcachedRulesOptions,
} from './memcached-options.js'

export type { WithoutStore } from '../core/decision-counts.js'
export type { DecisionSource } from '../core/decision-source.js'
export type { Latency } from '../core/latency.js'
export type { OnOutage, OutageChange } from '../remote/outage-watch.js'
export type { RedisStats as MemcachedStats } from '../remote/remote-statistics.js'
export type { MemcacheClient, MemcacheNode } from './client.js'
export type { MemcachedLimiter } from './memcached-limiter.js'
export type { MemcachedLimiterOptions, MemcachedOptions, MemcachedRulesOptions } from './memcached-options.js'
export type { MemcachedRule } from './memcached-rule.js'

/** The options of {@link createMemcachedLimiter} with a configuration store. */
export interface MemcachedConfigLimiterOptions extends MemcachedOptions, ConfigOptions {}

/**
 * Creates a limiter on Memcached that takes the rules of each key from a configuration store. Policies with other windows
 * than the default count under names of their own.
 * @param options the client, a prefix of at most 55 characters, the store, and the default
 * @returns an {@link AsyncLimiter}
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { Memcache } from 'memcache'
 * import { fileConfig } from 'millrace/config/file'
 * import { createMemcachedLimiter } from 'millrace/memcached'
 *
 * const limiter = createMemcachedLimiter({
 *   client: new Memcache('localhost:11211'),
 *   prefix: 'api',
 *   config: fileConfig({ path: './policies.json' }),
 *   default: { limit: 100, window: '1m' },
 * })
 * console.log((await limiter.check('user:42')).limit)
 * ```
 */
export function createMemcachedLimiter(options: MemcachedConfigLimiterOptions): AsyncLimiter
/**
 * Creates a limiter whose counts are on Memcached, so that one limit holds for all processes and machines that use the
 * same servers, prefix and rules. It counts by two fixed windows, weighted by time: near the limit on average, up to
 * nearly twice the limit around the end of a window. With `strict: true` it counts strictly, by any algorithm. Each
 * process goes by its own clock. Memcached may forget a counter at any time.
 * @param options the client, a prefix, the rules, and what happens while Memcached does not answer
 * @returns an {@link AsyncLimiter}. `pack`, `share`, `clearAll`, and (without `strict`)
 * `usage` of a part of the window are not possible;
 * `update` changes rules in this process
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { Memcache } from 'memcache'
 * import { createMemcachedLimiter } from 'millrace/memcached'
 *
 * const client = new Memcache('localhost:11211')
 * const limiter = createMemcachedLimiter({ client, prefix: 'api', limit: 100, window: '1m' })
 * const decision = await limiter.check('user:42')
 * if (!decision.allowed) console.log(decision.source, decision.retryAfterSeconds)
 * ```
 */
export function createMemcachedLimiter(
  options: MemcachedLimiterOptions | MemcachedRulesOptions,
): MemcachedLimiter
export function createMemcachedLimiter(
  options: MemcachedLimiterOptions | MemcachedRulesOptions | MemcachedConfigLimiterOptions,
): AsyncLimiter {
  if ((options as Partial<MemcachedConfigLimiterOptions>)?.config === undefined)
    return new MemcachedLimiter(checkMemcachedOptions(options as MemcachedLimiterOptions))
  return configuredRemote<MemcachedLimiterOptions>(options as MemcachedConfigLimiterOptions, {
    check: checkMemcachedOptions,
    make: (own) => new MemcachedLimiter(checkMemcachedOptions(own)),
  })
}
