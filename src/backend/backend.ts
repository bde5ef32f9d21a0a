// `millrace/backend`: limiters whose counts are in a store of your own.
import type { AsyncLimiter } from '../api/async-limiter.js'
import { configuredRemote } from '../policies/on-servers.js'
import type { ConfigOptions } from '../policies/options.js'
import { BackendLimiter } from './backend-limiter.js'
import {
  type BackendLimiterOptions,
  type BackendOptions,
  type BackendRulesOptions,
  checkBackendOptions,
} from './backend-options.js'

export type { DecisionSource } from '../core/decision-source.js'
export { type ErrorCode, MillraceError } from '../core/errors.js'
export type { OnOutage, OutageChange } from '../remote/outage-watch.js'
export type { RedisStats as BackendStats } from '../remote/remote-statistics.js'
export type { Values } from '../values/values.js'
export type { BackendLimiter } from './backend-limiter.js'
export type { BackendLimiterOptions, BackendOptions, BackendRulesOptions } from './backend-options.js'

/** The options of {@link createBackendLimiter} with a configuration store. */
export interface BackendConfigLimiterOptions extends BackendOptions, ConfigOptions {}

/**
 * Creates a limiter on a store of your own that takes the rules of each key from a configuration store. Policies with
 * other windows than the default count under names of their own.
 * @param options the store of counts, a prefix of at most 55 characters, the configuration store, and the default
 * @returns an {@link AsyncLimiter}
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { createBackendLimiter } from 'millrace/backend'
 * import { memoryConfig } from 'millrace/config/memory'
 *
 * const limiter = createBackendLimiter({
 *   values: myValues,
 *   source: 'mine',
 *   prefix: 'api',
 *   config: memoryConfig(),
 *   default: { limit: 100, window: '1m' },
 * })
 * ```
 */
export function createBackendLimiter(options: BackendConfigLimiterOptions): AsyncLimiter
/**
 * Creates a limiter whose counts are in a store that can do two things: read values, and write one if it has not changed
 * since. One limit holds then for all processes that use the same store, prefix and rules. It counts by any algorithm,
 * strictly.
 * @param options the store, its name, a prefix, the rules, and what happens while the store does not answer
 * @returns an {@link AsyncLimiter}. `pack`, `share` and `clearAll` are not possible; `update` changes rules in this
 * process
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE`
 * @example
 * ```ts
 * import { createBackendLimiter, type Values } from 'millrace/backend'
 *
 * const map = new Map<string, Uint8Array>()
 * const values: Values = {
 *   read: async (keys) => keys.map((key) => map.get(key)),
 *   swap: async (key, before, after) => {
 *     if (map.get(key) !== before) return false
 *     map.set(key, after)
 *     return true
 *   },
 * }
 * const limiter = createBackendLimiter({ values, source: 'map', prefix: 'api', limit: 100, window: '1m' })
 * console.log((await limiter.check('user:42')).remaining) // 99
 * ```
 */
export function createBackendLimiter(options: BackendLimiterOptions | BackendRulesOptions): BackendLimiter
export function createBackendLimiter(
  options: BackendLimiterOptions | BackendRulesOptions | BackendConfigLimiterOptions,
): AsyncLimiter {
  if ((options as Partial<BackendConfigLimiterOptions>)?.config === undefined)
    return new BackendLimiter(checkBackendOptions(options as BackendLimiterOptions))
  return configuredRemote<BackendLimiterOptions>(options as BackendConfigLimiterOptions, {
    check: checkBackendOptions,
    make: (own) => new BackendLimiter(checkBackendOptions(own)),
  })
}
