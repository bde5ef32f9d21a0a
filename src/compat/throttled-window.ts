import type { Clock } from '../core/clock.js'
import type { Counts } from './counts.js'
import { Mark } from './mark.js'
import type { CheckedOptions } from './options.js'
import { SlidingCounts } from './sliding-counts.js'

/** What the guard of @nestjs/throttler is told of a key. */
export interface ThrottlerStorageRecord {
  /** The hits that count. */
  totalHits: number
  /** Seconds until the window that began with the key's first hit ends, rounded up. */
  timeToExpire: number
  /** Whether the request is refused. */
  isBlocked: boolean
  /** Seconds until the key is admitted again, rounded up; 0 if it is not blocked. */
  timeToBlockExpire: number
}

/** What belongs to one `ttl` of @nestjs/throttler. The hit that blocks a key counts, too. */
export class ThrottledWindow {
  readonly #ttl: number
  readonly #hits: Counts
  /** Marks a key for a window from its first hit on: what `timeToExpire` tells. */
  readonly #openings: Mark
  /**
   * Marks a key for a window from the beginning of its last block on. When the block is over, its hits are
   * forgotten. After a window they have left anyway.
   */
  readonly #blocked: Mark

  constructor(ttl: number, options: CheckedOptions, clock: Clock) {
    this.#ttl = ttl
    this.#hits = new SlidingCounts(ttl, options, clock)
    this.#openings = new Mark(ttl, options.maxKeys, clock)
    this.#blocked = new Mark(ttl, options.maxKeys, clock)
  }

  /** Opens a window of the key unless one is open. Returns for how many seconds it stays open. */
  timeToExpire(key: string): number {
    return secondsOf(this.#openings.setOnce(key) || this.#ttl)
  }

  /** Counts a hit of a key that is not blocked. Returns its hits, and marks the key if they are above the limit. */
  hit(key: string, hitsKey: string, limit: number): number {
    if (this.#blocked.has(key)) {
      this.#blocked.clear(key)
      this.#hits.clear(hitsKey)
    }
    const hits = this.#add(hitsKey, limit)
    if (hits > limit) this.#blocked.set(key)
    return hits
  }

  /** Counts a hit if the key has room for it. A refused hit does not count later. */
  hitWithoutBlock(hitsKey: string, limit: number, timeToExpire: number): ThrottlerStorageRecord {
    const before = this.#hits.read(hitsKey, NO_LIMIT)
    const used = before?.hits ?? 0
    if (used >= limit) {
      const timeToBlockExpire = before === undefined ? timeToExpire : secondsOf(before.resetMs)
      return { totalHits: used + 1, timeToExpire, isBlocked: true, timeToBlockExpire }
    }
    return { totalHits: this.#add(hitsKey, limit), timeToExpire, isBlocked: false, timeToBlockExpire: 0 }
  }

  /** The hits that count. */
  used(hitsKey: string): number {
    return this.#hits.read(hitsKey, NO_LIMIT)?.hits ?? 0
  }

  /** Counts a hit within the limit, or the one that goes beyond it. */
  #add(hitsKey: string, limit: number): number {
    const { hits, allowed } = this.#hits.hit(hitsKey, limit + 1)
    if (allowed) return hits
    this.#hits.take(hitsKey, limit + 1, 1) // the limit is lower than it was
    return this.#hits.hit(hitsKey, hits).hits
  }

  clearAll(): void {
    for (const part of [this.#hits, this.#openings, this.#blocked]) part.clearAll()
  }

  async close(): Promise<void> {
    await Promise.all([this.#hits, this.#openings, this.#blocked].map((part) => part.close()))
  }
}

const NO_LIMIT = Number.POSITIVE_INFINITY

/** Whole seconds, rounded up. */
export const secondsOf = (ms: number): number => Math.ceil(ms / 1000)
