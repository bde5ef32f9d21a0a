/** In place of the store in memory of express-rate-limit 8. */
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { DecisionCounts } from '../core/decision-counts.js'
import type { Count, Counts, TakeOrder } from './counts.js'
import { keyOf } from './keys.js'
import type { CompatOptions } from './options.js'
import { RULE, statsOf } from './stats.js'
import { countsOf, Windows } from './windows.js'

export type { CompatOptions, Limiter, LimiterStats }
export { MillraceStore as MemoryStore }

/** The options of `rateLimit` of express-rate-limit that the store reads. */
export interface StoreOptions {
  /** The window in milliseconds. Fractions are rounded up. Below 1 every hit is the first, as in the original. */
  windowMs: number
  /** The limit. If it is a function, the store can't know it. */
  limit?: unknown
  skipFailedRequests?: boolean
  skipSuccessfulRequests?: boolean
}

/** The hits of a client, as express-rate-limit expects them. */
export interface ClientRateLimitInfo {
  /** The hits that count, with this one. */
  totalHits: number
  /** When hits leave: in a sliding window the oldest one, in a fixed window all. */
  resetTime: Date
}

/** The window of `rateLimit` unless its options say otherwise. */
const DEFAULT_WINDOW_MS = 60_000

/**
 * A store for `rateLimit` of express-rate-limit 8, also exported as `MemoryStore`. All of its answers are promises
 * that are resolved at once. It needs no timer.
 *
 * If `limit` is a number, a sliding window admits that many hits in any window. Refused hits count in `totalHits`
 * until the next admission, and don't hold it off. If `limit` is a function, the store does not know which hits
 * are refused: all of them count, so a client that goes on asking is refused until it pauses.
 *
 * @example
 * ```ts
 * import { rateLimit } from 'express-rate-limit'
 * import { MillraceStore } from 'millrace/compat/express-rate-limit'
 *
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store: new MillraceStore() }))
 * ```
 */
export class MillraceStore {
  /** Says that two stores never count the same key together. */
  readonly localKeys = true
  /** The window in milliseconds. Until `init` it is that of `rateLimit` without options. */
  windowMs = DEFAULT_WINDOW_MS
  readonly #windows: Windows<Counts>
  readonly #decided: DecisionCounts
  #limit = Number.POSITIVE_INFINITY
  #order: TakeOrder = 'refused-first'

  /**
   * @param options how hits are counted, and for how many keys
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
   */
  constructor(options?: CompatOptions) {
    this.#windows = new Windows(countsOf, options)
    this.#decided = new DecisionCounts(options?.nearLimit)
  }

  /**
   * Takes the options of `rateLimit`, which calls it.
   * @param options the options of `rateLimit`
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_DURATION` for a `windowMs` that is no number;
   * `ERR_MILLRACE_INVALID_OPTION` for one window more than `maxWindows`
   */
  init(options: StoreOptions): void {
    const { windowMs, limit, skipFailedRequests = false, skipSuccessfulRequests = false } = options
    this.#limit = typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY
    // A refusal is a failed request, which is taken back at once.
    this.#order = skipSuccessfulRequests && !skipFailedRequests ? 'admitted-first' : 'refused-first'
    // Last, as it may throw: `rateLimit` logs the error and goes on with the store.
    if (!isNone(windowMs)) this.#windows.of(windowMs)
    this.windowMs = windowMs
  }

  /**
   * Returns the hits of a key.
   * @param key the key
   * @returns a promise of its hits; undefined for an unknown key
   */
  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const nowMs = this.#windows.clock.read()
    const count = this.#counts()?.read(keyOf(key), this.#limit)
    return count === undefined ? undefined : infoOf(count, nowMs)
  }

  /**
   * Counts one hit.
   * @param key the key
   * @returns a promise of its hits, with this one
   */
  async increment(key: string): Promise<ClientRateLimitInfo> {
    const nowMs = this.#windows.clock.read()
    const only = { hits: 1, allowed: this.#limit >= 1, resetMs: this.windowMs }
    const count = this.#counts()?.hit(keyOf(key), this.#limit) ?? only
    this.#decided.countHit(RULE, count, this.#limit)
    return infoOf(count, nowMs)
  }

  /**
   * Takes one hit back, if the key has any.
   * @param key the key
   */
  async decrement(key: string): Promise<void> {
    this.#windows.clock.read()
    this.#counts()?.take(keyOf(key), this.#limit, 1, this.#order)
  }

  /**
   * Forgets a key.
   * @param key the key
   */
  async resetKey(key: string): Promise<void> {
    this.#windows.clock.read()
    this.#counts()?.clear(keyOf(key))
  }

  /**
   * Returns what was decided by this store, as {@link Limiter.stats} does; the original has no such method. Hits beyond
   * `limit` are refused. If `limit` is a function, the store does not know it, and counts all as admitted.
   */
  stats(): LimiterStats {
    return statsOf([this.#decided], this.#windows.tables)
  }

  /** Forgets all keys. */
  async resetAll(): Promise<void> {
    this.#windows.clearAll()
  }

  /** Forgets all keys and releases the memory. The store can be used again. */
  async shutdown(): Promise<void> {
    await this.#windows.close()
  }

  /** Undefined if the window is none. */
  #counts(): Counts | undefined {
    return isNone(this.windowMs) ? undefined : this.#windows.of(this.windowMs)
  }
}

/** A window that is over at once: the original has its end in whole milliseconds, rounded down. */
const isNone = (windowMs: number): boolean => typeof windowMs === 'number' && windowMs < 1

function infoOf({ hits, resetMs }: Pick<Count, 'hits' | 'resetMs'>, nowMs: number): ClientRateLimitInfo {
  return { totalHits: hits, resetTime: new Date(nowMs + resetMs) }
}
