import { type Clock, checkClock, monotonicClock, SharedManualClock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import { type Arena, attachArena } from '../memory/arena.js'
import { thisMachine } from '../shared-file/machine.js'
import { openNow } from '../shared-file/open-retries.js'
import { reopenSharedFile, type SharedFile } from '../shared-file/shared-file.js'
import type { FilePlace, SharedLimiter } from './share.js'

/** A limiter's memory, as it is to be worked on in this thread. */
export interface Attached {
  readonly arena: Arena
  readonly rule: string
  readonly clock: Clock
  readonly file?: SharedFile
}

/**
 * What `share()` has sent, in this thread; `clock` in place of one that could not be sent along.
 * @throws MillraceError `ERR_MILLRACE_INVALID_SHARE`, `ERR_MILLRACE_INVALID_CLOCK`; for a file as `openSharedFile`
 */
export function attachShared(shared: SharedLimiter, clock?: Clock): Attached {
  if (typeof shared !== 'object' || shared === null)
    throw refuse('shared', shared, 'the value of limiter.share()')
  const { buffer, file, rule, clock: sent } = shared
  if (file !== undefined) return attachFile(file, rule, clock)
  const arena = attachArena(buffer)
  if (typeof rule !== 'string') throw refuse('shared.rule', rule, "the rule's name")
  const own = clock === undefined ? sharedClock(sent) : clock
  if (own === undefined) {
    throw refuse(
      'shared.clock',
      sent,
      "'monotonic', a manual clock's memory, or options.clock for a clock of your own",
    )
  }
  checkClock(own)
  return { arena, rule, clock: own }
}

function attachFile(file: FilePlace, rule: string, clock: Clock | undefined): Attached {
  const { path, device, inode } = (file ?? {}) as Partial<FilePlace>
  if (typeof path !== 'string' || typeof device !== 'bigint' || typeof inode !== 'bigint') {
    throw refuse('shared.file', file, 'the file of limiter.share()')
  }
  if (typeof rule !== 'string') throw refuse('shared.rule', rule, "the rule's name")
  if (clock !== undefined) throw clockWithFileError(clock)
  const opened = openNow(path, reopenSharedFile({ path, device, inode }, rule, thisMachine))
  return { arena: opened.arena, rule, clock: opened.clock, file: opened }
}

/** No clock of a process's own agrees with those of the others, and goes on where it was when all of them are gone. */
export function clockWithFileError(clock: Clock): MillraceError {
  const expected = 'none beside shared.file, whose processes go by the clock of their machine'
  return new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock', clock, expected)
}

function sharedClock(clock: unknown): Clock | undefined {
  if (clock === 'monotonic') return monotonicClock
  return SharedManualClock.isMemory(clock) ? new SharedManualClock(clock) : undefined
}

function refuse(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_SHARE', option, value, expected)
}
