import type { Clock } from '../core/clock.js'
import { createLimiter } from '../create.js'
import type { Limiter } from '../limiter.js'
import { MOST_HITS } from './counts.js'
import { Mark } from './mark.js'

/** The admitted hits of the keys with a limit in one range, in a sliding window. */
export interface Tier {
  /** Admits a hit if the key then has at most `limit`. Returns how many it has, or 0 if it was refused. */
  admit(key: string, limit: number, cost: number): number
  /** Charges hits without a decision. */
  add(key: string, hits: number): void
  /** How many hits count. */
  used(key: string): number
  /** Whole milliseconds until the oldest of `used` hits leaves. `used` is above 0. */
  oldestMs(key: string, used: number): number
  /** Takes up to `cost` hits out, the oldest first. Returns how many. */
  take(key: string, cost: number): number
  clear(key: string): void
  clearAll(): void
  close(): Promise<void>
}

/** Keeps the time of each hit, to the millisecond; in a window of more than 37 hours as coarsely as {@link Mark}. */
export class LogTier implements Tier {
  readonly #windowMs: number
  readonly #hits: Limiter
  readonly #most: number

  constructor(windowMs: number, most: number, maxKeys: number, clock: Clock) {
    this.#windowMs = windowMs
    this.#most = most
    this.#hits = createLimiter({ limit: most, window: windowMs, algorithm: 'sliding-log', maxKeys, clock })
  }

  admit(key: string, limit: number, cost: number): number {
    const decision = this.#hits.check(key, cost, { limit })
    return decision.allowed ? limit - decision.remaining : 0
  }

  add(key: string, hits: number): void {
    this.#hits.penalize(key, hits)
  }

  used(key: string): number {
    return this.#hits.usage(key)
  }

  oldestMs(key: string, used: number): number {
    return Math.min(this.#windowMs, oldestOf(this.#hits, key, used, this.#most))
  }

  take(key: string, cost: number): number {
    return this.#hits.refund(key, cost)
  }

  clear(key: string): void {
    this.#hits.clear(key)
  }

  clearAll(): void {
    this.#hits.clearAll()
  }

  close(): Promise<void> {
    return this.#hits.close()
  }
}

/**
 * Counts hits in 60 buckets. A bucket counts until all of it has left the window. Beside them the last hit marks its
 * key for a window: a key that has paused so long has no hits, to the millisecond.
 */
export class BucketTier implements Tier {
  readonly #windowMs: number
  readonly #hits: Limiter
  readonly #last: Mark

  constructor(windowMs: number, maxKeys: number, clock: Clock) {
    this.#windowMs = windowMs
    this.#hits = createLimiter({ limit: MOST_HITS, window: windowMs, maxKeys, clock })
    this.#last = new Mark(windowMs, maxKeys, clock)
  }

  admit(key: string, limit: number, cost: number): number {
    if (this.#hasPaused(key)) this.#hits.clear(key)
    const decision = this.#hits.check(key, cost, { limit })
    if (!decision.allowed) return 0
    this.#last.set(key)
    return limit - decision.remaining
  }

  add(key: string, hits: number): void {
    this.#hits.penalize(key, hits)
    this.#last.set(key)
  }

  used(key: string): number {
    return this.#hasPaused(key) ? 0 : this.#hits.usage(key)
  }

  oldestMs(key: string, used: number): number {
    return Math.min(this.#windowMs, oldestOf(this.#hits, key, used, MOST_HITS))
  }

  take(key: string, cost: number): number {
    return this.#hits.refund(key, cost)
  }

  clear(key: string): void {
    this.#hits.clear(key)
    this.#last.clear(key)
  }

  clearAll(): void {
    this.#hits.clearAll()
    this.#last.clearAll()
  }

  async close(): Promise<void> {
    await Promise.all([this.#hits.close(), this.#last.close()])
  }

  #hasPaused(key: string): boolean {
    return !this.#last.has(key)
  }
}

/** How long a limiter that admits `most` units would refuse one more than are left: until the oldest leaves. */
function oldestOf(limiter: Limiter, key: string, used: number, most: number): number {
  return limiter.peek(key, most - used + 1, { limit: most }).retryAfterMs
}
