import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { MOST_IN_LOG } from '../core/rule-algorithms.js'
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
  readonly #hits: SlidingCounts
  /** Marks a key for a window from its first hit on: what `timeToExpire` tells. */
  readonly #openings: Mark
  /**
   * Marks a key for a window from the beginning of its last block on. When the block is over, its hits are
   * forgotten. After a window they have left anyway.
   */
  #blocked: Mark | undefined
  readonly #options: CheckedOptions
  readonly #clock: Clock

  constructor(ttl: number, options: CheckedOptions, clock: Clock) {
    this.#ttl = ttl
    this.#hits = new SlidingCounts(ttl, { ...options, maxLogLimit: withOneMore(options.maxLogLimit) }, clock)
    this.#openings = new Mark(ttl, options.maxKeys, clock)
    this.#options = options
    this.#clock = clock
  }

  /** Opens a window of the key unless one is open. Returns for how many seconds it stays open. */
  timeToExpire(key: string): number {
    return secondsOf(this.#openings.add(key) || this.#ttl)
  }

  /** Counts a hit of a key that is not blocked. Returns its hits, and marks the key if they are above the limit. */
  hit(key: string, hitsKey: string, limit: number): number {
    if (this.#blocked?.has(key)) {
      this.#blocked.clear(key)
      this.#hits.clear(hitsKey)
    }
    const hits = this.#add(hitsKey, limit)
    if (hits > limit) {
      this.#blocked ??= new Mark(this.#ttl, this.#options.maxKeys, this.#clock)
      this.#blocked.set(key)
    }
    return hits
  }

  /** Counts a hit if the key has room for it. A refused hit does not count later. */
  hitWithoutBlock(hitsKey: string, limit: number, timeToExpire: number): ThrottlerStorageRecord {
    const used = this.#hits.used(hitsKey)
    if (used >= limit) {
      const timeToBlockExpire = used === 0 ? timeToExpire : secondsOf(this.#hits.oldestMs(hitsKey))
      return { totalHits: used + 1, timeToExpire, isBlocked: true, timeToBlockExpire }
    }
    return { totalHits: this.#add(hitsKey, limit), timeToExpire, isBlocked: false, timeToBlockExpire: 0 }
  }

  /** The hits that count. */
  used(hitsKey: string): number {
    return this.#hits.used(hitsKey)
  }

  /** Counts a hit within the limit, or the one that goes beyond it. */
  #add(hitsKey: string, limit: number): number {
    const hits = this.#hits.admit(hitsKey, limit + 1, 1)
    return hits > 0 ? hits : this.#hits.admit(hitsKey, this.#hits.used(hitsKey) + 1, 1) // the limit was higher before
  }

  clearAll(): void {
    for (const part of [this.#hits, this.#openings, this.#blocked]) part?.clearAll()
  }

  limiters(): readonly Limiter[] {
    return [this.#hits, this.#openings, this.#blocked].flatMap((part) => part?.limiters() ?? [])
  }

  async close(): Promise<void> {
    await Promise.all([this.#hits, this.#openings, this.#blocked].map((part) => part?.close()))
  }
}

/** In place of a {@link ThrottledWindow} for a `ttl` of 0 or less: every hit has left before the next one. */
export class EmptyWindow {
  readonly #ttl: number

  constructor(ttl: number) {
    this.#ttl = ttl
  }

  timeToExpire(): number {
    return secondsOf(this.#ttl)
  }

  hit(): number {
    return 1
  }

  hitWithoutBlock(_hitsKey: string, limit: number, timeToExpire: number): ThrottlerStorageRecord {
    const isBlocked = limit <= 0
    return { totalHits: 1, timeToExpire, isBlocked, timeToBlockExpire: isBlocked ? timeToExpire : 0 }
  }

  used(): number {
    return 0
  }
}

/** The largest limit of the log, with room for the hit that blocks a key. */
const withOneMore = (maxLogLimit: number): number =>
  maxLogLimit === 0 ? 0 : Math.min(MOST_IN_LOG, maxLogLimit + 1)

/** Whole seconds, rounded up. */
export const secondsOf = (ms: number): number => Math.ceil(ms / 1000)
