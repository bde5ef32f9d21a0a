import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { millisecondsAs } from '../core/duration.js'
import { createLimiter } from '../create/create.js'
import { type Count, type Counts, MOST_HITS, wholeLimit } from './counts.js'
import { Mark } from './mark.js'
import type { CheckedOptions } from './options.js'

/**
 * Counts in windows that begin with the first hit of a key, exactly to the millisecond.
 *
 * `openings` marks a key for a window from the hit that opened it. `hits` counts what came since. Its units count
 * for two windows, and the hit that opens a window clears them.
 */
export class FixedCounts implements Counts {
  readonly #windowMs: number
  readonly #openings: Mark
  readonly #hits: Limiter

  constructor(windowMs: number, { maxKeys }: CheckedOptions, clock: Clock) {
    this.#windowMs = windowMs
    this.#openings = new Mark(windowMs, maxKeys, clock)
    this.#hits = createLimiter({
      limit: MOST_HITS,
      window: millisecondsAs(2 * windowMs),
      granularity: windowMs,
      maxKeys,
      clock,
    })
  }

  hit(key: string, limit: number, cost = 1): Count {
    const resetMs = this.#open(key)
    const charge = this.#hits.check(key, cost)
    const hits = charge.allowed ? MOST_HITS - charge.remaining : MOST_HITS
    return { hits, allowed: hits <= wholeLimit(limit), resetMs }
  }

  read(key: string, limit: number): Count | undefined {
    const resetMs = this.#openings.leftMs(key)
    if (resetMs === 0) return undefined
    const hits = this.#hits.usage(key)
    return { hits, allowed: hits <= wholeLimit(limit), resetMs }
  }

  take(key: string, _limit: number, cost: number): void {
    this.#open(key)
    this.#hits.refund(key, cost)
  }

  restart(key: string): void {
    if (!this.#openings.has(key)) return
    const hits = this.#hits.usage(key)
    this.#hits.clear(key)
    this.#openings.set(key)
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

  limiters(): readonly Limiter[] {
    return [...this.#openings.limiters(), this.#hits]
  }

  async close(): Promise<void> {
    await Promise.all([this.#openings.close(), this.#hits.close()])
  }

  /** Opens a window unless one is open. Returns how long it stays open. */
  #open(key: string): number {
    const leftMs = this.#openings.add(key)
    if (leftMs > 0) return leftMs
    this.#hits.clear(key)
    return this.#windowMs
  }
}
