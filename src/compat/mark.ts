import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { millisecondsAs } from '../core/duration.js'
import { createLimiter } from '../create/create.js'

/**
 * Marks keys for exactly so many milliseconds: a log of one unit for each key. More than 37 hours are counted in
 * coarser steps, more than eight million of them; a mark then lasts up to one step longer.
 */
export class Mark {
  readonly #ms: number
  readonly #log: Limiter

  /** With `again: 'renew'`, a key that is added once more is marked from then on. */
  constructor(ms: number, maxKeys: number, clock: Clock, again: 'keep' | 'renew' = 'keep') {
    const countRefused = again === 'renew'
    this.#ms = ms
    this.#log = createLimiter({
      limit: 1,
      window: millisecondsAs(ms),
      algorithm: 'sliding-log',
      countRefused,
      maxKeys,
      clock,
    })
  }

  /** Marks a key. Returns for how many milliseconds it was marked already, or 0. */
  add(key: string): number {
    return Math.min(this.#ms, this.#log.check(key).retryAfterMs)
  }

  /** Marks a key. Returns whether it was marked already. */
  addAgain(key: string): boolean {
    return !this.#log.check(key).allowed
  }

  /** Marks a key from now on, in place of an earlier mark. */
  set(key: string): void {
    this.#log.penalize(key, 1)
  }

  has(key: string): boolean {
    return this.#log.usage(key) > 0
  }

  /** For how many milliseconds a key is still marked; 0 if it is not. */
  leftMs(key: string): number {
    return Math.min(this.#ms, this.#log.peek(key).retryAfterMs)
  }

  clear(key: string): void {
    this.#log.clear(key)
  }

  clearAll(): void {
    this.#log.clearAll()
  }

  limiters(): readonly Limiter[] {
    return [this.#log]
  }

  close(): Promise<void> {
    return this.#log.close()
  }
}
