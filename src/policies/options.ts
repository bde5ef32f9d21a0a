/** The options of a limiter with a configuration store. */
import { checkOptions } from '../api/checks.js'
import type { EngineChoice, TableOptions } from '../api/options.js'
import type { ConfigStore } from '../config/config-store.js'
import { checkPolicy, type Policy } from '../config/policy.js'
import { type Duration, parseDuration } from '../core/duration.js'
import { invalid, MillraceError } from '../core/errors.js'
import { checkLimit, type Rules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import { isUncounted } from '../core/uncounted-limit.js'
import type { CacheSettings } from './cache.js'
import { MOST_WINDOWS } from './plan.js'

/** How the policies of a configuration store are cached, by each thread of each process. */
export interface ConfigCacheOptions {
  /**
   * The most keys that are cached: 1 to 16,777,216. It takes up to 300 bytes for each, beside the key itself. A policy
   * that no other key has takes about 150 bytes more, and 600 with two rules.
   * @default maxKeys
   */
  maxKeys?: number
  /**
   * After this time a policy is read again. Most stores tell changes at once (`store.watchDelayMs`); this is for
   * those that don't, and for messages that were lost.
   * @default '1m'
   */
  ttl?: Duration
  /**
   * For how long beyond that a policy is used that can't be read again, because the store is down. Afterwards the
   * option `onMiss` decides.
   * @default '1h'
   */
  maxStale?: Duration
  /**
   * How long `checkAsync`, `wait` and the limiters that return promises wait for a policy that is not cached.
   * @default '50ms'
   */
  deadline?: Duration
}

/** The options that choose the rules by a configuration store. */
export interface ConfigOptions {
  /**
   * The store that has the policies of keys: of `millrace/config/lmdb`, `millrace/config/redis` and others. A key has
   * the policy of its own, or else that of its longest prefix such as `user:*`, or else `default`. The limiter does
   * not close the store.
   */
  config: ConfigStore
  /** The rules of keys that have no policy: those of one rule, or `rules`. Their limits are 1 or more. */
  default: Policy
  /**
   * What `check` does with a key whose policy is not cached yet, if the store answers by promises or fails: it counts
   * by the default, or it is refused (`decision.source` is then `'config'`).
   * @default 'default'
   */
  onMiss?: 'default' | 'refuse'
  /** How policies are cached. */
  configCache?: ConfigCacheOptions
  /**
   * The most different windows of policies, with those of the default: 1 to 64. Policies that differ only in their
   * limits count as one. Each new one gets memory for `maxKeys` keys when a key first uses it; the address space is
   * reserved at creation: so much for each as for the default, or for a window of 60 buckets.
   * @default 16
   */
  maxWindows?: number
  /**
   * Told what goes wrong with the store: it can't be reached, a document is no policy, a policy does not fit. The
   * limiter goes on with what it knows.
   * @default a warning of the process, at most once a minute for each code of an error and each limiter
   */
  onConfigError?: (error: MillraceError) => void
}

/** The options of an attached limiter for its configuration store; the rest is that of the other threads. */
export type AttachConfigOptions = Partial<Omit<ConfigOptions, 'default' | 'maxWindows'>>

/** The options of {@link createLimiter} with a configuration store. */
export interface ConfigLimiterOptions<Name extends 'inline' | 'pool' = 'inline'>
  extends Omit<TableOptions, 'engine'>,
    EngineChoice<Name>,
    ConfigOptions,
    WithoutRules {}

/** The type of a rule's option beside `config`. No value has it; the compiler shows its text. */
type OnlyInDefault = 'this option belongs into default'
type WithoutRules = { [Option in keyof RuleOptions | 'rules']?: OnlyInDefault }

/** The options of a configuration store, checked. */
export interface ConfigSettings {
  readonly store: ConfigStore
  readonly policy: Policy
  readonly rules: Rules
  readonly cache: CacheSettings
  readonly onMiss: 'default' | 'refuse'
  readonly maxWindows: number
  readonly report: (error: MillraceError) => void
}

const MOST_CACHED = 2 ** 24

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_RULE` */
export function checkConfig(options: ConfigOptions, maxKeys: number): ConfigSettings {
  const { default: policy } = options
  for (const name of [...RULE_OPTIONS, 'rules']) {
    const value = (options as unknown as Record<string, unknown>)[name]
    if (value !== undefined)
      throw invalid(name, value, 'no value beside config: the rules belong into default')
  }
  if (typeof policy !== 'object' || policy === null)
    throw invalid(
      'default',
      policy,
      'the rule of keys without a policy, such as { limit: 100, window: "1m" }',
    )
  return { policy, rules: rulesOf(policy), ...checkStore(options, maxKeys) }
}

/** Checks the options of a configuration store without the default, which an attached thread has already. */
export function checkStore(
  options: Omit<ConfigOptions, 'default'>,
  maxKeys: number,
): Omit<ConfigSettings, 'policy' | 'rules'> {
  const { config, onMiss = 'default', maxWindows = 16, onConfigError, configCache = {} } = options
  if (!isStore(config)) throw invalid('config', config, 'a configuration store, such as lmdbConfig({ path })')
  if (onMiss !== 'default' && onMiss !== 'refuse') throw invalid('onMiss', onMiss, "'default' or 'refuse'")
  if (!Number.isInteger(maxWindows) || maxWindows < 1 || maxWindows > MOST_WINDOWS)
    throw invalid('maxWindows', maxWindows, `an integer from 1 to ${MOST_WINDOWS}`)
  if (onConfigError !== undefined && typeof onConfigError !== 'function')
    throw invalid('onConfigError', onConfigError, 'a function')
  const report = onConfigError === undefined ? warnOnceAMinute() : guarded(onConfigError)
  return { store: config, cache: checkCache(configCache, maxKeys), onMiss, maxWindows, report }
}

function checkCache(options: ConfigCacheOptions, maxKeys: number): CacheSettings {
  checkOptions(options, ['maxKeys', 'ttl', 'maxStale', 'deadline'], 'configCache')
  const {
    maxKeys: most = Math.min(maxKeys, MOST_CACHED),
    ttl = '1m',
    maxStale = '1h',
    deadline = '50ms',
  } = options
  if (!Number.isInteger(most) || most < 1 || most > MOST_CACHED)
    throw invalid('configCache.maxKeys', most, `an integer from 1 to ${MOST_CACHED}`)
  return {
    maxKeys: most,
    ttlMs: millisecondsOf(ttl, 'configCache.ttl', 1),
    maxStaleMs: millisecondsOf(maxStale, 'configCache.maxStale', 0),
    deadlineMs: millisecondsOf(deadline, 'configCache.deadline', 1),
  }
}

function millisecondsOf(value: Duration, option: string, least: number): number {
  const ms = value === 0 && least === 0 ? 0 : parseDuration(value, option)
  if (ms >= least && ms < 2 ** 31) return ms
  throw invalid(option, value, `a duration of ${least} ms to 24 days`)
}

function rulesOf(policy: Policy): Rules {
  try {
    const rules = checkPolicy(policy)
    for (const { limit } of rules) if (isUncounted(limit)) checkLimit(limit) // throws: its cells count all other keys
    return rules
  } catch (error) {
    const { option, value, expected } = error as MillraceError
    throw new MillraceError('ERR_MILLRACE_INVALID_RULE', `default.${option}`, value, expected, {
      cause: error,
    })
  }
}

function isStore(store: unknown): store is ConfigStore {
  const methods = ['get', 'find', 'put', 'delete', 'list', 'watch', 'addCheck', 'close'] as const
  return (
    typeof store === 'object' &&
    store !== null &&
    methods.every((name) => typeof (store as ConfigStore)[name] === 'function')
  )
}

/** What the function of a user throws must not end the read of a policy. */
function guarded(onConfigError: (error: MillraceError) => void): (error: MillraceError) => void {
  const warn = warnOnceAMinute()
  return (error) => {
    try {
      onConfigError(error)
    } catch (cause) {
      const expected = 'a function that does not throw'
      const what = cause instanceof Error ? cause.message : String(cause)
      warn(new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'onConfigError', what, expected, { cause }))
    }
  }
}

/** Warns at most once a minute of errors with the same code. */
function warnOnceAMinute(): (error: MillraceError) => void {
  const QUIET_MS = 60_000
  const last = new Map<string, number>()
  return (error) => {
    const nowMs = performance.now()
    if (nowMs - (last.get(error.code) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return
    last.set(error.code, nowMs)
    process.emitWarning(`${error.message} (${error.code})`, {
      type: 'MillraceWarning',
      code: 'MILLRACE_CONFIG',
    })
  }
}
