import { hashesKeys } from '../core/channels.js'
import { type Clock, monotonicClock, SharedManualClock } from '../core/clock.js'
import type { RuleMemory } from '../memory/arenas.js'
import { type ClockSample, upAheadMs } from '../shared-file/agreement.js'
import { thisMachine } from '../shared-file/machine.js'

/**
 * What `limiter.share()` returns and {@link attachLimiter} takes. It can be sent by `workerData` and
 * `postMessage`.
 */
export interface SharedLimiter {
  /** The counts; empty if they are in a file. */
  readonly buffer: SharedArrayBuffer
  /** Where the counts begin in the buffer, in words. Default: at its start. */
  readonly from?: number
  /** What a thread needs to count by policies of a configuration store. */
  readonly policies?: SharedPolicies
  /** The file with the counts. The other thread maps it again. */
  readonly file?: FilePlace
  /** The name of the rule. If there are several: of the first one. */
  readonly rule: string
  /** The names of all rules, in order, if there are several. */
  readonly rules?: readonly string[]
  /** The option of the limiter, if it was given. */
  readonly nearLimit?: number
  /** Whether the thread that shares it has hashes in place of keys in its events. The secret stays there. */
  readonly keyInEvents?: 'hash'
  /** The memory of a manual clock. `'own'`: a clock that the other thread must pass to `attachLimiter`. */
  readonly clock: 'monotonic' | 'own' | SharedArrayBuffer
  /** What the other thread compares its clock with, if that is `'monotonic'`. */
  readonly clockSample?: ClockSample
}

/** The memory in which a limiter with a configuration store counts by policies with other windows. */
export interface SharedPolicies {
  /** Where arenas are placed; empty with a shared file. */
  readonly space: SharedArrayBuffer
  /** The option of the limiter. */
  readonly maxKeys: number
  /** The option of the limiter. */
  readonly maxWindows: number
  /** The system's time minus the limiter's clock, in milliseconds, for windows that are aligned to UTC. */
  readonly aheadMs: number
  /** The option of the limiter. */
  readonly onMiss: 'default' | 'refuse'
  /** The rules of keys without a policy. */
  readonly default: object
}

/** The identity of a shared file. A later file at the same path is another file. */
export interface FilePlace {
  /** Its absolute path. */
  readonly path: string
  /** The number of its device. */
  readonly device: bigint
  /** Its number on the device. */
  readonly inode: bigint
}

export function shareOf(
  { arenas, names, nearLimit }: RuleMemory,
  clock: Clock,
  file?: FilePlace,
): SharedLimiter {
  const [rule] = names
  const options = {
    ...(nearLimit !== undefined && { nearLimit }),
    ...(hashesKeys() && { keyInEvents: 'hash' as const }),
  }
  const own = names.length === 1 ? { rule, ...options } : { rule, rules: [...names], ...options }
  if (file !== undefined) return { buffer: new SharedArrayBuffer(0), file, ...own, clock: 'monotonic' }
  const buffer = arenas[0].buffer as SharedArrayBuffer
  const from = arenas[0].words.byteOffset / 4
  const counts = from === 0 ? { buffer } : { buffer, from }
  if (clock instanceof SharedManualClock) return { ...counts, ...own, clock: clock.buffer }
  if (clock !== monotonicClock) return { ...counts, ...own, clock: 'own' }
  const clockSample = { upAheadMs: upAheadMs(thisMachine, 0), atLeastMs: clock.now() }
  return { ...counts, ...own, clock: 'monotonic', clockSample }
}
