import type { Clock } from '../core/clock.js'
import { createLimiter } from '../create.js'
import type { Limiter } from '../limiter.js'
import { type Count, type Counts, type TakeOrder, wholeLimit } from './counts.js'
import { Mark } from './mark.js'
import type { CheckedOptions } from './options.js'
import { BucketTier, LogTier, type Tier } from './tiers.js'

/**
 * Counts in a sliding window. A hit beyond the limit is refused, and kept apart: it counts in what is answered, but
 * does not hold off the next admission. So a client that goes on asking is admitted at its limit.
 *
 * Admitted hits with a limit of up to `maxLogLimit` are in a log, those with a larger one in buckets. A key whose
 * limit changes between the two has hits in both; both count.
 */
export class SlidingCounts implements Counts {
  readonly #windowMs: number
  readonly #options: CheckedOptions
  readonly #clock: Clock
  #log: Tier | undefined
  #buckets: Tier | undefined
  /** The refused hits of a key. */
  #refused: Limiter | undefined
  /** Marks keys whose hits were all taken back: they are known, with 0 hits. */
  #emptied: Mark | undefined

  constructor(windowMs: number, options: CheckedOptions, clock: Clock) {
    this.#windowMs = windowMs
    this.#options = options
    this.#clock = clock
  }

  hit(key: string, limit: number, cost = 1): Count {
    const whole = wholeLimit(limit)
    const tier = this.#tierOf(whole)
    const others = this.#otherThan(tier)?.used(key) ?? 0
    const room = whole - others
    const used = room >= 1 ? tier.admit(key, room, cost) : 0
    if (used === 0) return this.#refuse(key, cost)
    if (used === cost) this.#beginAnew(key)
    const hits = used + others
    return { hits, allowed: true, resetMs: this.#oldestMs(key) }
  }

  read(key: string, limit: number): Count | undefined {
    const whole = wholeLimit(limit)
    const used = this.#used(key)
    const hits = used >= whole ? used + this.#refusedOf(key) : used
    if (hits > 0) return { hits, allowed: hits <= whole, resetMs: this.#oldestMs(key) }
    const resetMs = this.#emptied?.leftMs(key) ?? 0
    return resetMs === 0 ? undefined : { hits: 0, allowed: true, resetMs }
  }

  take(key: string, limit: number, cost: number, order: TakeOrder = 'refused-first'): void {
    const refused = this.#used(key) >= wholeLimit(limit) ? this.#refused : undefined
    let left = cost
    if (order === 'refused-first') left -= refused?.refund(key, left) ?? 0
    left -= this.#log?.take(key, left) ?? 0
    left -= this.#buckets?.take(key, left) ?? 0
    if (order === 'admitted-first') refused?.refund(key, left)
    if (this.#used(key) > 0) return
    this.#emptied ??= new Mark(this.#windowMs, this.#options.maxKeys, this.#clock)
    this.#emptied.setOnce(key)
  }

  restart(key: string, limit: number): void {
    const used = this.#used(key)
    const refused = this.#refusedOf(key)
    this.clear(key)
    if (used > 0) this.#tierOf(wholeLimit(limit)).add(key, used)
    if (refused > 0) this.#refused?.penalize(key, refused)
  }

  clear(key: string): void {
    for (const part of this.#parts()) part.clear(key)
  }

  clearAll(): void {
    for (const part of this.#parts()) part.clearAll()
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts().map((part) => part.close()))
  }

  #refuse(key: string, cost: number): Count {
    const { maxKeys } = this.#options
    this.#refused ??= createLimiter({
      limit: 1,
      window: this.#windowMs,
      granularity: this.#windowMs / 8,
      maxKeys,
      clock: this.#clock,
    })
    this.#refused.penalize(key, cost)
    const hits = this.#used(key) + this.#refused.usage(key)
    return { hits, allowed: false, resetMs: this.#oldestMs(key) }
  }

  /** The key has its first hits: what was refused or taken back before is over. */
  #beginAnew(key: string): void {
    this.#refused?.clear(key)
    this.#emptied?.clear(key)
  }

  #tierOf(limit: number): Tier {
    const { maxLogLimit, maxKeys } = this.#options
    if (limit <= maxLogLimit) {
      this.#log ??= new LogTier(this.#windowMs, maxLogLimit, maxKeys, this.#clock)
      return this.#log
    }
    this.#buckets ??= new BucketTier(this.#windowMs, maxKeys, this.#clock)
    return this.#buckets
  }

  #otherThan(tier: Tier): Tier | undefined {
    return tier === this.#log ? this.#buckets : this.#log
  }

  #used(key: string): number {
    return (this.#log?.used(key) ?? 0) + (this.#buckets?.used(key) ?? 0)
  }

  #refusedOf(key: string): number {
    return this.#refused?.usage(key) ?? 0
  }

  /** Whole milliseconds until the oldest hit leaves; a window if all hits were refused. */
  #oldestMs(key: string): number {
    return Math.min(this.#windowMs, ...[this.#log, this.#buckets].map((tier) => oldestIn(tier, key)))
  }

  #parts(): (Tier | Limiter | Mark)[] {
    return [this.#log, this.#buckets, this.#refused, this.#emptied].filter((part) => part !== undefined)
  }
}

function oldestIn(tier: Tier | undefined, key: string): number {
  const used = tier?.used(key) ?? 0
  return used === 0 ? Number.POSITIVE_INFINITY : tier!.oldestMs(key, used)
}
