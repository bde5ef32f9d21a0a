import { type Clock, monotonicClock, SharedManualClock } from '../core/clock.js'
import type { Arena } from '../memory/arena.js'

/** A limiter as it travels to another thread; by `attachLimiter` it becomes one again. Structured-cloneable. */
export interface SharedLimiter {
  readonly buffer: SharedArrayBuffer
  /** The rule's name. */
  readonly rule: string
  /** A manual clock as its memory; `'own'` must be handed over again. */
  readonly clock: 'monotonic' | 'own' | SharedArrayBuffer
}

export function shareOf(arena: Arena, rule: string, clock: Clock): SharedLimiter {
  if (clock instanceof SharedManualClock) return { buffer: arena.buffer, rule, clock: clock.buffer }
  return { buffer: arena.buffer, rule, clock: clock === monotonicClock ? 'monotonic' : 'own' }
}
