import { resolve } from 'node:path'
import { type Clock, checkClock, monotonicClock, SharedManualClock } from './core/clock.js'
import { MillraceError } from './core/errors.js'
import { checkRule, type RuleOptions } from './core/rule.js'
import type { FilePlace, SharedLimiter } from './engines/share.js'
import { warnIfLarge } from './large-arena.js'
import { Limiter } from './limiter.js'
import { attachArena, createArena } from './memory/arena.js'
import { ON_FULL, type OnFull } from './memory/layout.js'
import { type Machine, thisMachine } from './shared-file/machine.js'
import { openSharedFile, reopenSharedFile } from './shared-file/shared-file.js'

/** What a limiter is made of: one rule, and where its counts live. */
export interface LimiterOptions extends RuleOptions {
  /**
   * How many keys are to count at the same time. Memory is fixed by it when the limiter is made (about 340 bytes a key at
   * the default granularity, 85 with a tenth of the window), and used as keys come.
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
  /** Where decisions run: on the calling thread. @default 'inline' */
  engine?: 'inline'
  /** @default the machine's monotonic clock */
  clock?: Clock
  /**
   * A file that has the counts: every process that names it has the same limit, and they stay when none is there. It is made
   * where there is none (mode 0600, its space taken at once); the others must have been made with the same `window`,
   * `granularity`, `maxKeys`, `edge`, `onFull` and `rangeSum`. The last `limit` holds for all, as by `update`. On Linux and macOS, with the
   * package's C++ addon; by the machine's clock alone. Never truncate it while it is open: that ends the processes.
   * @default counts in this process's memory
   */
  shared?: { file: string }
}

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
  'clock',
  'shared',
]

/**
 * Makes a limiter that decides on the calling thread, and that other threads can attach to.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_CLOCK`,
 * `ERR_MILLRACE_ARENA_TOO_LARGE`; with `shared` also `ERR_MILLRACE_SHARED_FILE`, `ERR_MILLRACE_SHARED_MISMATCH`,
 * `ERR_MILLRACE_NO_ADDON`
 */
export function createLimiter(options: LimiterOptions): Limiter {
  return createLimiterOn(thisMachine, options)
}

/** @internal The same, on a machine whose clocks a test turns; it matters only where counts are in a file. */
export function createLimiterOn(machine: Machine, options: LimiterOptions): Limiter {
  if (typeof options !== 'object' || options === null) {
    throw invalid('options', options, 'an object with at least limit and window')
  }
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) throw invalid('options', name, `only ${KNOWN.join(', ')}`)
  }
  const rule = checkRule(options)
  const { maxKeys = DEFAULT_MAX_KEYS, onFull = 'evict', engine = 'inline', clock = monotonicClock } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1) throw invalid('maxKeys', maxKeys, 'an integer of 1 or more')
  if (!ON_FULL.includes(onFull)) throw invalid('onFull', onFull, "'evict', 'deny' or 'allow'")
  if (engine !== 'inline') throw invalid('engine', engine, "'inline'")
  checkClock(clock)
  if (options.shared === undefined) {
    const arena = createArena(rule, maxKeys, onFull, clock.now())
    warnIfLarge(rule, arena.shape, maxKeys)
    return new Limiter(arena, rule.name, clock)
  }
  const path = checkShared(options.shared)
  if (options.clock !== undefined) throw clockWithFile(options.clock)
  const file = openSharedFile(path, { rule, maxKeys, onFull }, machine)
  return new Limiter(file.arena, rule.name, file.clock, file)
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

/** No clock of a process's own agrees with those of the others, and goes on where it was when all of them are gone. */
function clockWithFile(clock: Clock): MillraceError {
  const expected = 'none beside shared.file, whose processes go by the clock of their machine'
  return new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock', clock, expected)
}

/**
 * Joins a limiter of another thread: same keys, same counts, same limit. A manual clock comes along with it; a clock of
 * your own is handed over again here, and must agree with the others to less than a granule. A file is mapped again.
 * @throws MillraceError `ERR_MILLRACE_INVALID_SHARE`, `ERR_MILLRACE_INVALID_CLOCK`; for a file as `createLimiter`
 */
export function attachLimiter(shared: SharedLimiter, options: { clock?: Clock } = {}): Limiter {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, 'an object')
  for (const name of Object.keys(options)) if (name !== 'clock') throw invalid('options', name, 'only clock')
  const refuse = (option: string, value: unknown, expected: string) =>
    new MillraceError('ERR_MILLRACE_INVALID_SHARE', option, value, expected)
  if (typeof shared !== 'object' || shared === null)
    throw refuse('shared', shared, 'the value of limiter.share()')
  if (shared.file !== undefined) return attachFile(shared, options.clock)
  const arena = attachArena(shared.buffer)
  if (typeof shared.rule !== 'string') throw refuse('shared.rule', shared.rule, "the rule's name")
  const clock = options.clock === undefined ? sharedClock(shared.clock) : options.clock
  if (clock === undefined) {
    throw refuse(
      'shared.clock',
      shared.clock,
      "'monotonic', a manual clock's memory, or options.clock for a clock of your own",
    )
  }
  checkClock(clock)
  return new Limiter(arena, shared.rule, clock)
}

function attachFile({ file, rule }: SharedLimiter, clock: Clock | undefined): Limiter {
  const refuse = (option: string, value: unknown, expected: string) =>
    new MillraceError('ERR_MILLRACE_INVALID_SHARE', option, value, expected)
  const { path, device, inode } = (file ?? {}) as Partial<FilePlace>
  if (typeof path !== 'string' || typeof device !== 'bigint' || typeof inode !== 'bigint') {
    throw refuse('shared.file', file, 'the file of limiter.share()')
  }
  if (typeof rule !== 'string') throw refuse('shared.rule', rule, "the rule's name")
  if (clock !== undefined) throw clockWithFile(clock)
  const opened = reopenSharedFile({ path, device, inode }, thisMachine)
  return new Limiter(opened.arena, rule, opened.clock, opened)
}

function sharedClock(clock: unknown): Clock | undefined {
  if (clock === 'monotonic') return monotonicClock
  return SharedManualClock.isMemory(clock) ? new SharedManualClock(clock) : undefined
}

function invalid(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
}
