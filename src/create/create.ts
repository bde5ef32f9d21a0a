import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type { AsyncLimiter } from '../api/async-limiter.js'
import { checkOptions, checkSignal } from '../api/checks.js'
import type { Limiter } from '../api/limiter.js'
import type {
  Engine,
  EngineOptions,
  LimiterOf,
  LimiterOptions,
  OpeningOptions,
  PoolLimiterOptions,
  RulesEngineOptions,
  RulesLimiterOptions,
} from '../api/options.js'
import type { PoolOptions } from '../api/pool-options.js'
import { type Clock, checkClock, monotonicClock, readingOf, SharedManualClock } from '../core/clock.js'
import { invalid, MillraceError } from '../core/errors.js'
import { lazily } from '../core/lazily.js'
import { checkNearLimit } from '../core/near-limit.js'
import { CONFIG_OPTIONS, ENGINE_OPTIONS, refuseUnknown } from '../core/option-names.js'
import { type Rules, rulesGiven } from '../core/rule.js'
import { RULE_OPTIONS } from '../core/rule-options.js'
import { clockWithFileError, defaultClock } from '../engines/attach.js'
import type { PoolSettings } from '../engines/pool/pool.js'
import { inlineLimiterOn, poolLimiterOn } from '../limiters/limiter-on.js'
import { alignedTo, createArenas, type RuleMemory } from '../memory/arenas.js'
import { ON_FULL } from '../memory/layout.js'
import type { ConfigLimiterOptions, ConfigSettings } from '../policies/options.js'
import { type Machine, thisMachine } from '../shared-file/machine.js'
import type { ArenaOptions } from '../shared-file/mismatch.js'
import type { SharedFile } from '../shared-file/shared-file.js'
import { warnIfLarge } from './large-arena.js'

const require = createRequire(import.meta.url)
const inMemory = lazily(
  () => require('../policies/in-memory.js') as typeof import('../policies/in-memory.js'),
  'creation',
)
const configOptions = lazily(
  () => require('../policies/options.js') as typeof import('../policies/options.js'),
  'creation',
)
const poolOptions = lazily(
  () => require('../api/pool-options.js') as typeof import('../api/pool-options.js'),
  'creation',
)
const hugePagesOf = lazily(
  () => require('../native/huge-pages.js') as typeof import('../native/huge-pages.js'),
  'creation',
)
const openRetries = lazily(
  () => require('../shared-file/open-retries.js') as typeof import('../shared-file/open-retries.js'),
  'creation',
)
const sharedFiles = lazily(
  () => require('../shared-file/shared-file.js') as typeof import('../shared-file/shared-file.js'),
  'creation',
)

/** The rules beside the other options, several of them, or the rules of a configuration store. */
type AnyOptions<Name extends Engine> =
  | EngineOptions<Name>
  | RulesEngineOptions<Name>
  | ConfigLimiterOptions<Name>

const DEFAULT_MAX_KEYS = 100_000
const KNOWN = [...RULE_OPTIONS, ...CONFIG_OPTIONS, 'rules', ...ENGINE_OPTIONS]

/**
 * Creates a limiter. It decides on the calling thread; with `engine: 'pool'`, on worker threads of its own,
 * by promises.
 *
 * With `shared`, it blocks the thread for up to a tenth of a second while another process opens the same
 * file. {@link openLimiter} waits without blocking.
 * @param options the rule (`limit` and `window` at least), the size of the table, the engine, the clock, a
 * shared file
 * @returns a {@link Limiter}; with `engine: 'pool'` an {@link AsyncLimiter}
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`,
 * `ERR_MILLRACE_INVALID_CLOCK`, `ERR_MILLRACE_ARENA_TOO_LARGE`; with `shared` also
 * `ERR_MILLRACE_SHARED_FILE`, `ERR_MILLRACE_SHARED_MISMATCH`, `ERR_MILLRACE_SHARED_BUSY`,
 * `ERR_MILLRACE_NO_ADDON`; with `engine: 'pool'` also `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED`
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 *
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * console.log(limiter.check('user:42').allowed)
 *
 * const pooled = createLimiter({ limit: 100, window: '1m', engine: 'pool' })
 * console.log((await pooled.check('user:42')).allowed)
 * ```
 */
export function createLimiter<Name extends Engine = 'inline'>(options: AnyOptions<Name>): LimiterOf<Name>
/** @internal Never called: `ReturnType<typeof createLimiter>` and `Parameters` read the last signature. */
export function createLimiter(options: LimiterOptions | RulesLimiterOptions, none: never): Limiter
export function createLimiter(options: AnyOptions<Engine>): Limiter | AsyncLimiter {
  return createLimiterOn(thisMachine, options)
}

/**
 * Creates a limiter like {@link createLimiter}, but waits for a shared file without blocking the event loop:
 * up to ten seconds, while another process opens it. Use it in servers of several processes, which all open
 * the file at start-up.
 * @param options the options of {@link createLimiter}
 * @param opening a signal that ends the wait
 * @returns a promise of a {@link Limiter}; with `engine: 'pool'` of an {@link AsyncLimiter}
 * @throws {MillraceError} (rejects) what {@link createLimiter} throws, with `ERR_MILLRACE_SHARED_BUSY` after
 * ten seconds; or the reason of the signal
 * @example
 * ```ts
 * import { openLimiter } from 'millrace'
 *
 * const limiter = await openLimiter({ limit: 100, window: '1m', shared: { file: './api-limits.arena' } })
 * console.log(limiter.check('user:42').allowed)
 * ```
 */
export async function openLimiter<Name extends Engine = 'inline'>(
  options: AnyOptions<Name>,
  opening: OpeningOptions = {},
): Promise<LimiterOf<Name>> {
  checkOptions(opening, ['signal'], 'opening')
  const { signal } = opening
  checkSignal(signal)
  const plan = planOf(options as Options)
  signal?.throwIfAborted()
  const { path } = plan
  if (path === undefined) return limiterOf(plan) as LimiterOf<Name>
  const attempts = sharedFiles().openSharedFile(path, plan, thisMachine)
  const file = await openRetries().openWithRetries(path, attempts, signal)
  return limiterOf(plan, file) as LimiterOf<Name>
}

/**
 * @internal {@link createLimiter} for tests that control the clocks of the machine. They matter only for a
 * shared file.
 */
export function createLimiterOn<Name extends Engine = 'inline'>(
  machine: Machine,
  options: AnyOptions<Name>,
): LimiterOf<Name> {
  const plan = planOf(options as Options)
  const { path } = plan
  const file =
    path === undefined
      ? undefined
      : openRetries().openNow(path, sharedFiles().openSharedFile(path, plan, machine))
  return limiterOf(plan, file) as LimiterOf<Name>
}

/** The checked options. */
interface Plan extends ArenaOptions {
  readonly clock: Clock
  /** The path of the shared file. */
  readonly path: string | undefined
  readonly hugePages: boolean
  readonly nearLimit: number | undefined
  /** Only with `engine: 'pool'`. */
  readonly settings: PoolSettings | undefined
  /** Only with a configuration store. */
  readonly config: ConfigSettings | undefined
}

type Options = LimiterOptions | RulesLimiterOptions | PoolLimiterOptions | ConfigLimiterOptions

/** @throws MillraceError */
function planOf(options: Options): Plan {
  if (typeof options !== 'object' || options === null) {
    throw invalid('options', options, 'an object with at least limit and window, or rules')
  }
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  const { config: store } = options as { config?: unknown }
  const plainRules = store === undefined ? rulesOf(options as LimiterOptions) : undefined
  // Each option is read once: a getter may return another value the next time.
  const {
    maxKeys = DEFAULT_MAX_KEYS,
    onFull = 'evict',
    engine = 'inline',
    clock: ownClock,
    shared,
    hugePages = false,
    nearLimit: ownNearLimit,
  } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1) throw invalid('maxKeys', maxKeys, 'an integer of 1 or more')
  if (!ON_FULL.includes(onFull)) throw invalid('onFull', onFull, "'evict', 'deny' or 'allow'")
  if (engine !== 'inline' && engine !== 'pool') throw invalid('engine', engine, "'inline' or 'pool'")
  const { pool } = options as { pool?: PoolOptions }
  if (engine === 'inline' && pool !== undefined)
    throw invalid('pool', pool, "no value without engine: 'pool'")
  const clock = ownClock === undefined ? defaultClock() : ownClock
  checkClock(clock)
  const config =
    store === undefined ? undefined : configOptions().checkConfig(options as ConfigLimiterOptions, maxKeys)
  const rules = config?.rules ?? plainRules!
  const settings = engine === 'pool' ? poolOptions().checkPool(pool) : undefined
  const nearLimit = checkNearLimit(ownNearLimit)
  const path = shared === undefined ? undefined : checkShared(shared)
  if (typeof hugePages !== 'boolean') throw invalid('hugePages', hugePages, 'true or false')
  if (hugePages && path !== undefined)
    throw invalid('hugePages', true, 'no value with shared, whose pages are those of the file')
  if (path !== undefined && ownClock !== undefined) throw clockWithFileError(ownClock)
  if (path === undefined && settings !== undefined && isOwn(clock)) throw clockForPoolError(clock)
  return { rules, maxKeys, onFull, clock, path, settings, config, hugePages, nearLimit }
}

/** The rules: the option `rules`, or the one rule whose options stand beside the others. */
function rulesOf(options: LimiterOptions | RulesLimiterOptions | PoolLimiterOptions): Rules {
  for (const name of CONFIG_OPTIONS) {
    const value = (options as unknown as Record<string, unknown>)[name]
    if (value !== undefined) throw invalid(name, value, 'no value without config, a configuration store')
  }
  return rulesGiven(options)[0]
}

/** Creates the limiter on the file, or without a file on new memory. */
function limiterOf(plan: Plan, file?: SharedFile): Limiter | AsyncLimiter {
  const { rules, maxKeys, onFull, settings, config, hugePages, nearLimit } = plan
  const names = rules.map(({ name }) => name) as [string, ...string[]]
  const nowMs = file === undefined ? readingOf(plan.clock) : 0
  // A clock of your own is the time by which windows are aligned.
  const aheadMs = file === undefined && plan.clock === monotonicClock ? Date.now() - nowMs : 0
  const arenas = file?.arenas ?? createArenas(alignedTo(aheadMs, rules), maxKeys, onFull, nowMs)
  if (file === undefined) warnIfLarge(rules, arenas[0].buffer.byteLength, maxKeys)
  if (hugePages) hugePagesOf().useHugePages(arenas[0].buffer as SharedArrayBuffer)
  const memory = { arenas, names, nearLimit }
  const clock = file?.clock ?? plan.clock
  if (config === undefined) return limiterOn(memory, clock, settings, file)
  const { maxWindows, policy } = config
  const space =
    file === undefined ? inMemory().reserveSpace(rules, maxKeys, maxWindows).buffer : new SharedArrayBuffer(0)
  if (hugePages) hugePagesOf().useHugePages(space)
  const share = { space, maxKeys, maxWindows, aheadMs, default: policy }
  return inMemory().configuredLimiterOn({ memory, clock, file, settings, onFull }, config, share)
}

/** With `settings`, a pool decides. */
function limiterOn(
  memory: RuleMemory,
  clock: Clock,
  settings: PoolSettings | undefined,
  file?: SharedFile,
): Limiter | AsyncLimiter {
  return settings === undefined
    ? inlineLimiterOn(memory, clock, file)
    : poolLimiterOn(memory, clock, settings, file)
}

const isOwn = (clock: Clock): boolean => clock !== monotonicClock && !(clock instanceof SharedManualClock)

function clockForPoolError(clock: Clock): MillraceError {
  const expected =
    "none or manualClock() with engine: 'pool', whose workers can't call a function of this thread"
  return new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock', clock, expected)
}

function checkShared(shared: unknown): string {
  if (typeof shared !== 'object' || shared === null) throw invalid('shared', shared, '{ file: a path }')
  refuseUnknown(shared, ['file'], (name, expected) => invalid('shared', name, expected))
  const { file } = shared as { file?: unknown }
  if (typeof file !== 'string' || file === '' || file.includes('\0')) {
    throw invalid('shared.file', file, 'the path of a file')
  }
  return resolve(file)
}
