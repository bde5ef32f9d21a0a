import { createRequire } from 'node:module'
import { type Clock, checkClock, monotonicClock, SharedManualClock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import { lazily } from '../core/lazily.js'
import { checkBuffer } from '../memory/arena.js'
import { attachArenas, type RuleMemory } from '../memory/arenas.js'
import { defaultClock } from '../native/default-clock.js'
import { type ClockSample, checkAgreement } from '../shared-file/agreement.js'
import { thisMachine } from '../shared-file/machine.js'
import type { SharedFile } from '../shared-file/shared-file.js'
import type { FilePlace, SharedLimiter } from './share.js'

const require = createRequire(import.meta.url)
const openRetries = lazily(
  () => require('../shared-file/open-retries.js') as typeof import('../shared-file/open-retries.js'),
  'creation',
)
const sharedFiles = lazily(
  () => require('../shared-file/shared-file.js') as typeof import('../shared-file/shared-file.js'),
  'creation',
)

export { defaultClock }

/** The memory of a limiter, attached to this thread. */
export interface Attached {
  readonly memory: RuleMemory
  readonly clock: Clock
  readonly file?: SharedFile
}

/**
 * Attaches the value of `share()` to this thread. `clock` replaces a clock that could not be sent.
 * @throws MillraceError `ERR_MILLRACE_INVALID_SHARE`, `ERR_MILLRACE_INVALID_CLOCK`; for a file the errors of
 * `openSharedFile`
 */
export function attachShared(shared: SharedLimiter, clock?: Clock): Attached {
  if (typeof shared !== 'object' || shared === null)
    throw shareError('shared', shared, 'the value of limiter.share()')
  const { buffer, file, rule, rules, clock: sent, clockSample, from = 0 } = shared
  const nearLimit = checkShare(shared.nearLimit)
  if (file !== undefined) return attachFile(file, rule, rules, nearLimit, clock)
  checkBuffer(buffer)
  const names = checkNames(rule, rules)
  if (!Number.isSafeInteger(from) || from < 0)
    throw shareError('shared.from', from, 'the value of limiter.share()')
  const arenas = attachArenas(buffer, names.length, from)
  const own = clock === undefined ? sharedClock(sent) : clock
  if (own === undefined) {
    throw shareError(
      'shared.clock',
      sent,
      "'monotonic', a manual clock's memory, or options.clock for a clock of your own",
    )
  }
  checkClock(own)
  if (own === monotonicClock && sent === 'monotonic') {
    checkAgreement('shared.clock', arenas, thisMachine, 0, checkSample(clockSample))
  }
  return { memory: { arenas, names, nearLimit }, clock: own }
}

function attachFile(
  file: FilePlace,
  rule: unknown,
  rules: unknown,
  nearLimit: number | undefined,
  clock: Clock | undefined,
): Attached {
  const { path, device, inode } = (file ?? {}) as Partial<FilePlace>
  if (typeof path !== 'string' || typeof device !== 'bigint' || typeof inode !== 'bigint') {
    throw shareError('shared.file', file, 'the file of limiter.share()')
  }
  const names = checkNames(rule, rules)
  if (clock !== undefined) throw clockWithFileError(clock)
  defaultClock()
  const attempts = sharedFiles().reopenSharedFile({ path, device, inode }, names, thisMachine)
  const opened = openRetries().openNow(path, attempts)
  return { memory: { arenas: opened.arenas, names, nearLimit }, clock: opened.clock, file: opened }
}

function checkShare(nearLimit: unknown): number | undefined {
  if (nearLimit === undefined || (typeof nearLimit === 'number' && nearLimit > 0 && nearLimit <= 1))
    return nearLimit
  throw shareError('shared.nearLimit', nearLimit, 'the value of limiter.share()')
}

/** The names of the rules, the first of which is also in `rule`. */
function checkNames(rule: unknown, rules: unknown): RuleMemory['names'] {
  if (typeof rule !== 'string') throw shareError('shared.rule', rule, "the rule's name")
  if (rules === undefined) return [rule]
  const names: unknown[] = Array.isArray(rules) ? [...rules] : []
  const areNames = names.length > 0 && names.every((name) => typeof name === 'string')
  if (!areNames || names[0] !== rule || new Set(names).size < names.length) {
    throw shareError('shared.rules', rules, 'the names of the rules')
  }
  return names as [string, ...string[]]
}

/**
 * The error of a clock together with a file. Such a clock would not agree with those of other processes, and
 * would not continue where it was after all of them have ended.
 */
export function clockWithFileError(clock: Clock): MillraceError {
  const expected = 'none with shared.file, whose processes use the clock of their machine'
  return new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock', clock, expected)
}

function sharedClock(clock: unknown): Clock | undefined {
  if (clock === 'monotonic') return defaultClock()
  return SharedManualClock.isMemory(clock) ? new SharedManualClock(clock) : undefined
}

/** Without a sample only the arenas' newest readings are compared. */
function checkSample(sample: unknown): ClockSample {
  if (sample === undefined) return { atLeastMs: Number.NEGATIVE_INFINITY }
  const { atLeastMs, upAheadMs } = (sample ?? {}) as Partial<ClockSample>
  const isValid = (ms: unknown): ms is number => Number.isFinite(ms)
  if (!isValid(atLeastMs) || !(upAheadMs === undefined || isValid(upAheadMs)))
    throw shareError('shared.clockSample', sample, 'the value of limiter.share()')
  return { atLeastMs, upAheadMs }
}

function shareError(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_SHARE', option, value, expected)
}
