import { type Clock, monotonicClock, SharedManualClock } from '../core/clock.js'
import type { Arena } from '../memory/arena.js'

/** A limiter as it travels to another thread; by `attachLimiter` it becomes one again. Structured-cloneable. */
export interface SharedLimiter {
  /** The counts; of no bytes where they are in a file. */
  readonly buffer: SharedArrayBuffer
  /** The file that has them, which the other thread maps for itself. */
  readonly file?: FilePlace
  /** The rule's name. */
  readonly rule: string
  /** A manual clock as its memory; `'own'` must be handed over again. */
  readonly clock: 'monotonic' | 'own' | SharedArrayBuffer
}

/** Which file it is: another one that has come to the same path is not it. */
export interface FilePlace {
  readonly path: string
  readonly device: bigint
  readonly inode: bigint
}

export function shareOf(arena: Arena, rule: string, clock: Clock, file?: FilePlace): SharedLimiter {
  if (file !== undefined) return { buffer: new SharedArrayBuffer(0), file, rule, clock: 'monotonic' }
  const buffer = arena.buffer as SharedArrayBuffer
  if (clock instanceof SharedManualClock) return { buffer, rule, clock: clock.buffer }
  return { buffer, rule, clock: clock === monotonicClock ? 'monotonic' : 'own' }
}
