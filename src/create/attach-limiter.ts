import { createRequire } from 'node:module'
import type { Limiter } from '../api/limiter.js'
import type { PoolOptions } from '../api/pool-options.js'
import type { Policy } from '../config/policy.js'
import { hashKeysUnlessChosen } from '../core/channels.js'
import type { Clock } from '../core/clock.js'
import { invalid } from '../core/errors.js'
import { lazily } from '../core/lazily.js'
import { CONFIG_OPTIONS, refuseUnknown } from '../core/option-names.js'
import { type Attached, attachShared } from '../engines/attach.js'
import type { SharedLimiter, SharedPolicies } from '../engines/share.js'
import { inlineLimiterOn, poolLimiterOn } from '../limiters/limiter-on.js'
import type { PoolLimiter } from '../limiters/pool-limiter.js'
import type { AttachConfigOptions } from '../policies/options.js'

const require = createRequire(import.meta.url)
const inMemory = lazily(
  () => require('../policies/in-memory.js') as typeof import('../policies/in-memory.js'),
  'creation',
)
const configOptions = lazily(
  () => require('../policies/options.js') as typeof import('../policies/options.js'),
  'creation',
)
const configPolicy = lazily(
  () => require('../config/policy.js') as typeof import('../config/policy.js'),
  'creation',
)
const poolOptions = lazily(
  () => require('../api/pool-options.js') as typeof import('../api/pool-options.js'),
  'creation',
)

/** The options of {@link attachLimiter}. */
export interface AttachOptions extends AttachConfigOptions {
  /**
   * Needed if the limiter has a clock of your own, which can't be sent. Its readings must be less than one granularity
   * apart from those of the other threads.
   * @default the clock of the other threads. A manual clock is part of `shared`
   */
  clock?: Clock
}

const KNOWN = ['clock', ...CONFIG_OPTIONS.filter((name) => name !== 'default' && name !== 'maxWindows')]

/**
 * Joins a limiter of another thread, to decide on this thread with the same keys, the same counts and the
 * same limit.
 * @param shared the value of `limiter.share()`, received by `workerData` or `postMessage`
 * @param options a clock, if the limiter needs one; a configuration store, if the limiter has one: each thread opens
 * its own
 * @returns a limiter that decides on this thread. Each thread closes its own
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_SHARE`, `ERR_MILLRACE_INVALID_OPTION`,
 * `ERR_MILLRACE_INVALID_CLOCK`; for a shared file also `ERR_MILLRACE_SHARED_FILE`,
 * `ERR_MILLRACE_SHARED_MISMATCH`, `ERR_MILLRACE_SHARED_BUSY`, `ERR_MILLRACE_NO_ADDON`
 * @example
 * ```ts
 * import { workerData } from 'node:worker_threads'
 * import { attachLimiter } from 'millrace'
 *
 * const limiter = attachLimiter(workerData) // new Worker(file, { workerData: limiter.share() })
 * console.log(limiter.check('user:42').allowed)
 * ```
 */
export function attachLimiter(shared: SharedLimiter, options: AttachOptions = {}): Limiter {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, 'an object')
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  const attached = attachShared(shared, options.clock)
  if (shared.keyInEvents === 'hash') hashKeysUnlessChosen()
  const { memory, clock, file } = attached
  try {
    const { policies } = shared
    if (policies !== undefined) return attachConfigured(attached, policies, options)
    for (const name of KNOWN.slice(1)) {
      const value = (options as Record<string, unknown>)[name]
      if (value !== undefined) throw invalid(name, value, 'no value: the limiter has no configuration store')
    }
  } catch (error) {
    file?.release()
    throw error
  }
  return inlineLimiterOn(memory, clock, file)
}

function attachConfigured(
  { memory, clock, file }: Attached,
  policies: SharedPolicies,
  options: AttachOptions,
): Limiter {
  const { maxKeys, maxWindows, onMiss, default: policy } = policies
  const { checkStore } = configOptions()
  const given = { ...options, onMiss: options.onMiss ?? onMiss, maxWindows } as Parameters<
    typeof checkStore
  >[0]
  const settings = {
    ...checkStore(given, maxKeys),
    policy: policy as Policy,
    rules: configPolicy().checkPolicy(policy),
  }
  const foundation = { memory, clock, file, settings: undefined, onFull: memory.arenas[0].onFull }
  return inMemory().configuredLimiterOn(foundation, settings, policies) as Limiter
}

/**
 * @internal Joins a limiter of another thread, to decide on a pool of this thread's own, by the monotonic
 * clock.
 * @throws MillraceError as `attachLimiter`, and `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED`
 */
export function attachPool(shared: SharedLimiter, pool?: PoolOptions): PoolLimiter {
  const settings = poolOptions().checkPool(pool)
  const { memory, clock, file } = attachShared(shared)
  if (shared.keyInEvents === 'hash') hashKeysUnlessChosen()
  return poolLimiterOn(memory, clock, settings, file)
}
