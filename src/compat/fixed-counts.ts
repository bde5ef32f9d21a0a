import type { Clock } from '../core/clock.js'
import { createLimiter } from '../create.js'
import type { Limiter } from '../limiter.js'
import { type Count, type Counts, wholeLimit } from './counts.js'
import type { CheckedOptions } from './options.js'

/**
 * Counts in windows that begin with the first hit of a key, exactly to the millisecond.
 *
 * `openings` is a log of one unit for each key: the hit that opened its window. While that counts, the window is
 * open, and the log says how much longer. `hits` counts what came since. Its units count for two windows, and
 * the hit that opens a window clears them.
 */
export class FixedCounts implements Counts {
  readonly #windowMs: number
  readonly #openings: Limiter
  readonly #hits: Limiter

  constructor(windowMs: number, { maxKeys }: CheckedOptions, clock: Clock) {
    this.#windowMs = windowMs
    this.#openings = createLimiter({ limit: 1, window: windowMs, algorithm: 'sliding-log', maxKeys, clock })
    this.#hits = createLimiter({ limit: 1, window: 2 * windowMs, granularity: windowMs, maxKeys, clock })
  }

  hit(key: string, limit: number, cost = 1): Count {
    const resetMs = this.#open(key)
    this.#hits.penalize(key, cost)
    const hits = this.#hits.usage(key)
    return { hits, allowed: hits <= wholeLimit(limit), resetMs }
  }

  read(key: string, limit: number): Count | undefined {
    const opening = this.#openings.peek(key)
    if (opening.allowed) return undefined
    const hits = this.#hits.usage(key)
    return { hits, allowed: hits <= wholeLimit(limit), resetMs: opening.retryAfterMs }
  }

  take(key: string, _limit: number, cost: number): void {
    this.#open(key)
    this.#hits.refund(key, cost)
  }

  restart(key: string): void {
    if (this.#openings.peek(key).allowed) return
    const hits = this.#hits.usage(key)
    this.clear(key)
    this.#openings.check(key)
    this.#hits.penalize(key, hits)
  }

  clear(key: string): void {
    this.#openings.clear(key)
    this.#hits.clear(key)
  }

  clearAll(): void {
    this.#openings.clearAll()
    this.#hits.clearAll()
  }

  async close(): Promise<void> {
    await Promise.all([this.#openings.close(), this.#hits.close()])
  }

  /** Opens a window unless one is open. Returns how long it stays open. */
  #open(key: string): number {
    const opening = this.#openings.check(key)
    if (!opening.allowed) return opening.retryAfterMs
    this.#hits.clear(key)
    return this.#windowMs
  }
}
