import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { millisecondsAs } from '../core/duration.js'
import { createLimiter } from '../create/create.js'
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
  limiters(): readonly Limiter[]
  close(): Promise<void>
}

/** What both tiers do with their limiter. */
abstract class LimiterTier {
  protected readonly windowMs: number
  protected readonly hits: Limiter
  /** The limit of the rule. A call with another one takes longer. */
  readonly #limit: number
  /** The largest limit. */
  readonly #most: number

  constructor(windowMs: number, hits: Limiter, most: number) {
    this.windowMs = windowMs
    this.hits = hits
    this.#limit = hits.rule.limit
    this.#most = most
  }

  /** Admits a hit: see {@link Tier.admit}. */
  protected check(key: string, limit: number, cost: number): number {
    const isOwn = limit === this.#limit
    const decision = isOwn ? this.hits.check(key, cost) : this.hits.check(key, cost, { limit })
    return decision.allowed ? limit - decision.remaining : 0
  }

  /** As long as a limiter that admits the most would refuse one hit more than are left. */
  oldestMs(key: string, used: number): number {
    const limit = this.#most
    const oneMore = Math.max(1, limit - used + 1)
    return Math.min(this.windowMs, this.hits.peek(key, oneMore, { limit }).retryAfterMs)
  }

  limiters(): readonly Limiter[] {
    return [this.hits]
  }

  take(key: string, cost: number): number {
    return this.hits.refund(key, cost)
  }
}

/** Keeps the time of each hit, to the millisecond; in a window of more than 37 hours as coarsely as {@link Mark}. */
export class LogTier extends LimiterTier implements Tier {
  constructor(windowMs: number, limit: number, maxLimit: number, maxKeys: number, clock: Clock) {
    const rule = {
      limit: Math.max(1, limit),
      maxLimit,
      window: millisecondsAs(windowMs),
      algorithm: 'sliding-log',
    } as const
    super(windowMs, createLimiter({ ...rule, maxKeys, clock }), maxLimit)
  }

  admit(key: string, limit: number, cost: number): number {
    return this.check(key, limit, cost)
  }

  add(key: string, hits: number): void {
    this.hits.penalize(key, hits)
  }

  used(key: string): number {
    return this.hits.usage(key)
  }

  clear(key: string): void {
    this.hits.clear(key)
  }

  clearAll(): void {
    this.hits.clearAll()
  }

  close(): Promise<void> {
    return this.hits.close()
  }
}

/**
 * Counts hits in 60 buckets. A bucket counts until all of it has left the window. Beside them the last hit marks its
 * key for a window: a key that has paused so long has no hits, to the millisecond.
 */
export class BucketTier extends LimiterTier implements Tier {
  readonly #last: Mark

  constructor(windowMs: number, limit: number, maxKeys: number, clock: Clock) {
    super(
      windowMs,
      createLimiter({ limit: Math.max(1, limit), window: millisecondsAs(windowMs), maxKeys, clock }),
      MOST_HITS,
    )
    this.#last = new Mark(windowMs, maxKeys, clock, 'renew')
  }

  admit(key: string, limit: number, cost: number): number {
    const used = this.check(key, limit, cost)
    if (used === 0) return this.#hasPaused(key) ? this.#admitAfterPause(key, limit, cost) : 0
    const hasPaused = !this.#last.addAgain(key)
    if (!hasPaused || used === cost) return used
    this.hits.clear(key)
    this.hits.penalize(key, cost)
    return cost
  }

  add(key: string, hits: number): void {
    this.hits.penalize(key, hits)
    this.#last.addAgain(key)
  }

  used(key: string): number {
    return this.#hasPaused(key) ? 0 : this.hits.usage(key)
  }

  clear(key: string): void {
    this.hits.clear(key) // the mark of a key without hits says nothing
  }

  clearAll(): void {
    this.hits.clearAll()
    this.#last.clearAll()
  }

  override limiters(): readonly Limiter[] {
    return [this.hits, ...this.#last.limiters()]
  }

  async close(): Promise<void> {
    await Promise.all([this.hits.close(), this.#last.close()])
  }

  #hasPaused(key: string): boolean {
    return !this.#last.has(key)
  }

  #admitAfterPause(key: string, limit: number, cost: number): number {
    this.hits.clear(key)
    const used = this.check(key, limit, cost)
    if (used > 0) this.#last.addAgain(key)
    return used
  }
}
