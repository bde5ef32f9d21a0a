import { resolve } from 'node:path'
import { AsyncLimiter } from './async-limiter.js'
import { checkOptions, checkSignal } from './checks.js'
import { type Clock, checkClock, monotonicClock, readingOf, SharedManualClock } from './core/clock.js'
import { MillraceError } from './core/errors.js'
import type { Signal } from './core/on-abort.js'
import { checkRule, type RuleOptions } from './core/rule.js'
import { attachShared, clockWithFileError } from './engines/attach.js'
import type { PoolSettings } from './engines/pool.js'
import type { SharedLimiter } from './engines/share.js'
import { warnIfLarge } from './large-arena.js'
import { Limiter, type LimiterFile } from './limiter.js'
import { type Arena, createArena } from './memory/arena.js'
import { ON_FULL, type OnFull } from './memory/layout.js'
import { checkPool, type PoolOptions } from './pool-options.js'
import { type Machine, thisMachine } from './shared-file/machine.js'
import type { ArenaOptions } from './shared-file/mismatch.js'
import { openNow, openWithRetries } from './shared-file/open-retries.js'
import { openSharedFile, type SharedFile } from './shared-file/shared-file.js'

/** What a limiter is made of: one rule, and where its counts live. */
export interface LimiterOptions extends RuleOptions {
  /**
   * How many keys are to count at the same time. Memory is fixed by it when the limiter is made (about 345 bytes a key at
   * the default granularity, 95 with a tenth of the window), and used as keys come.
   * @default 100_000
   */
  maxKeys?: number
  /**
   * What becomes of a new key where the table is full of live ones: `'evict'` lets it take the place, and the counts, of
   * one that used least (so that inventing keys wins nobody a fresh quota); `'deny'` refuses it; `'allow'` admits it
   * uncounted.
   * @default 'evict'
   */
  onFull?: OnFull
  /** Where decisions run: on the calling thread; or in those of a pool, see {@link PoolLimiterOptions}. @default 'inline' */
  engine?: 'inline'
  /** @default the machine's monotonic clock */
  clock?: Clock
  /**
   * A file that has the counts: every process that names it has the same limit, and they stay when none is there. It is made
   * where there is none (mode 0600, its space taken at once). A file belongs to one rule: all who name it have the same `name`,
   * `window`, `granularity`, `maxKeys`, `edge`, `onFull` and `rangeSum`; another rule takes another file. The last `limit` holds for all, as by `update`. On Linux and macOS, with the
   * package's C++ addon; by the machine's clock alone. Never truncate it while it is open: that ends the processes.
   * @default counts in this process's memory
   */
  shared?: { file: string }
}

/** A limiter that decides in the threads of a pool, and answers by promises. */
export interface PoolLimiterOptions extends Omit<LimiterOptions, 'engine'> {
  engine: 'pool'
  /** How many threads there are, and how much may wait for them. */
  pool?: PoolOptions
  /** `manualClock()`, or by default the machine's: the threads of the pool can't be given one of your own. */
  clock?: Clock
}

/** How {@link openLimiter} waits. */
export interface OpeningOptions {
  /** Ends the waiting: the call rejects with its reason, and nothing is left open. */
  signal?: Signal
}

type Engine = 'inline' | 'pool'

/** The options of either engine in one type: a wrong one is one compile error, and the error names it. */
export interface EngineOptions<Name extends Engine> extends Omit<LimiterOptions, 'engine'> {
  engine?: Name
  pool?: 'pool' extends Name ? PoolOptions : never
}

/** What {@link createLimiter} makes for an engine. */
export type LimiterOf<Name extends Engine> = Name extends 'pool' ? AsyncLimiter : Limiter

const DEFAULT_MAX_KEYS = 100_000
const KNOWN = [
  'limit',
  'window',
  'granularity',
  'algorithm',
  'edge',
  'rangeSum',
  'name',
  'maxKeys',
  'onFull',
  'engine',
  'pool',
  'clock',
  'shared',
]

/**
 * Makes a limiter that other threads can attach to. It decides on the calling thread; with `engine: 'pool'`, in threads of its own, and
 * answers by promises. With `shared`, it may block the thread for a tenth of a second where another process is just opening the
 * file: {@link openLimiter} does not.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_CLOCK`,
 * `ERR_MILLRACE_ARENA_TOO_LARGE`; with `shared` also `ERR_MILLRACE_SHARED_FILE`, `ERR_MILLRACE_SHARED_MISMATCH`,
 * `ERR_MILLRACE_SHARED_BUSY`, `ERR_MILLRACE_NO_ADDON`; with `engine: 'pool'` also `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED`
 */
export function createLimiter<Name extends Engine = 'inline'>(options: EngineOptions<Name>): LimiterOf<Name>
/** Never called: `ReturnType<typeof createLimiter>` and `Parameters` read the last signature. */
export function createLimiter(options: LimiterOptions, none: never): Limiter
export function createLimiter(options: EngineOptions<Engine>): Limiter | AsyncLimiter {
  return createLimiterOn(thisMachine, options)
}

/**
 * Makes the same limiter, but waits for a shared file without blocking the event loop: for up to ten seconds, while another process
 * is opening it. For servers of several processes, which all open it as they start.
 *
 * Rejects with what {@link createLimiter} throws, with `ERR_MILLRACE_SHARED_BUSY` after those ten seconds, and with the reason
 * of `signal`, which ends the waiting.
 *
 * @example
 * const limiter = await openLimiter({ limit: 100, window: '1m', shared: { file: './api-limits.arena' } })
 */
export async function openLimiter<Name extends Engine = 'inline'>(
  options: EngineOptions<Name>,
  opening: OpeningOptions = {},
): Promise<LimiterOf<Name>> {
  checkOptions(opening, ['signal'], 'opening')
  const { signal } = opening
  checkSignal(signal)
  const plan = planOf(options as LimiterOptions)
  signal?.throwIfAborted()
  const { path } = plan
  if (path === undefined) return made(plan) as LimiterOf<Name>
  const file = await openWithRetries(path, openSharedFile(path, plan, thisMachine), signal)
  return made(plan, file) as LimiterOf<Name>
}

/** @internal {@link createLimiter}, on a machine whose clocks a test turns; it matters only where counts are in a file. */
export function createLimiterOn<Name extends Engine = 'inline'>(
  machine: Machine,
  options: EngineOptions<Name>,
): LimiterOf<Name> {
  const plan = planOf(options as LimiterOptions)
  const { path } = plan
  const file = path === undefined ? undefined : openNow(path, openSharedFile(path, plan, machine))
  return made(plan, file) as LimiterOf<Name>
}

/** Options that have been checked. */
interface Plan extends ArenaOptions {
  readonly clock: Clock
  /** The shared file. */
  readonly path: string | undefined
  /** Of a pool. */
  readonly settings: PoolSettings | undefined
}

/** @throws MillraceError */
function planOf(options: LimiterOptions | PoolLimiterOptions): Plan {
  if (typeof options !== 'object' || options === null) {
    throw invalid('options', options, 'an object with at least limit and window')
  }
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) throw invalid('options', name, `only ${KNOWN.join(', ')}`)
  }
  const rule = checkRule(options)
  // Each option is read once: a getter may answer otherwise the next time.
  const { maxKeys = DEFAULT_MAX_KEYS, onFull = 'evict', engine = 'inline', clock: ownClock, shared } = options
  const clock = ownClock === undefined ? monotonicClock : ownClock
  if (!Number.isInteger(maxKeys) || maxKeys < 1) throw invalid('maxKeys', maxKeys, 'an integer of 1 or more')
  if (!ON_FULL.includes(onFull)) throw invalid('onFull', onFull, "'evict', 'deny' or 'allow'")
  if (engine !== 'inline' && engine !== 'pool') throw invalid('engine', engine, "'inline' or 'pool'")
  const { pool } = options as { pool?: PoolOptions }
  if (engine === 'inline' && pool !== undefined)
    throw invalid('pool', pool, "nothing but beside engine: 'pool'")
  checkClock(clock)
  const settings = engine === 'pool' ? checkPool(pool) : undefined
  const path = shared === undefined ? undefined : checkShared(shared)
  if (path !== undefined && ownClock !== undefined) throw clockWithFileError(ownClock)
  if (path === undefined && settings !== undefined && isOwn(clock)) throw clockForPoolError(clock)
  return { rule, maxKeys, onFull, clock, path, settings }
}

/** The limiter, on counts in the file or, without one, in memory of its own. */
function made(plan: Plan, file?: SharedFile): Limiter | AsyncLimiter {
  const { rule, maxKeys, onFull, settings } = plan
  if (file !== undefined) return limiterOn(file.arena, rule.name, file.clock, settings, file)
  const arena = createArena(rule, maxKeys, onFull, readingOf(plan.clock))
  warnIfLarge(rule, arena.shape, maxKeys)
  return limiterOn(arena, rule.name, plan.clock, settings)
}

/** With `settings`, one that decides by a pool. A file is let go of where it can't be made. */
function limiterOn(
  arena: Arena,
  rule: string,
  clock: Clock,
  settings: PoolSettings | undefined,
  file?: LimiterFile,
): Limiter | AsyncLimiter {
  try {
    if (settings !== undefined) return new AsyncLimiter(arena, rule, clock, settings, file)
    return new Limiter(arena, rule, clock, file)
  } catch (error) {
    file?.release()
    throw error
  }
}

const isOwn = (clock: Clock): boolean => clock !== monotonicClock && !(clock instanceof SharedManualClock)

function clockForPoolError(clock: Clock): MillraceError {
  const expected =
    "none or manualClock() beside engine: 'pool', whose threads can't call a function of this one"
  return new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock', clock, expected)
}

function checkShared(shared: unknown): string {
  if (typeof shared !== 'object' || shared === null) throw invalid('shared', shared, '{ file: a path }')
  for (const name of Object.keys(shared)) if (name !== 'file') throw invalid('shared', name, 'only file')
  const { file } = shared as { file?: unknown }
  if (typeof file !== 'string' || file === '' || file.includes('\0')) {
    throw invalid('shared.file', file, 'the path of a file')
  }
  return resolve(file)
}

/**
 * Joins a limiter of another thread: same keys, same counts, same limit. A manual clock comes along with it; a clock of
 * your own is handed over again here, and must agree with the others to less than a granule. A file is mapped again.
 * @throws MillraceError `ERR_MILLRACE_INVALID_SHARE`, `ERR_MILLRACE_INVALID_CLOCK`; for a file as `createLimiter`
 */
export function attachLimiter(shared: SharedLimiter, options: { clock?: Clock } = {}): Limiter {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, 'an object')
  for (const name of Object.keys(options)) if (name !== 'clock') throw invalid('options', name, 'only clock')
  const { arena, rule, clock, file } = attachShared(shared, options.clock)
  return limiterOn(arena, rule, clock, undefined, file) as Limiter
}

/**
 * @internal Joins a limiter of another thread by a pool of this one's own, on the machine's clock.
 * @throws MillraceError as `attachLimiter`, and `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED`
 */
export function attachPool(shared: SharedLimiter, pool?: PoolOptions): AsyncLimiter {
  const settings = checkPool(pool)
  const { arena, rule, clock, file } = attachShared(shared)
  return limiterOn(arena, rule, clock, settings, file) as AsyncLimiter
}

function invalid(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
}
