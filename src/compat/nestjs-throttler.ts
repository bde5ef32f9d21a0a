/** In place of the storage in memory of @nestjs/throttler 6. */
import { checkOptions } from '../api/checks.js'
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { DecisionCounts } from '../core/decision-counts.js'
import { keyOf } from './keys.js'
import { Mark } from './mark.js'
import type { CompatOptions } from './options.js'
import { joined, statsOf } from './stats.js'
import { EmptyWindow, secondsOf, ThrottledWindow, type ThrottlerStorageRecord } from './throttled-window.js'
import { WallClock } from './wall-clock.js'
import { Windows } from './windows.js'

export type { Limiter, LimiterStats, ThrottlerStorageRecord }
export { MillraceThrottlerStorage as ThrottlerStorageService }

/** The options of {@link MillraceThrottlerStorage}. */
export type ThrottlerStorageOptions = Omit<CompatOptions, 'algorithm'>

/** Limits up to this one are counted to the millisecond. */
const MAX_LOG_LIMIT = 100

/**
 * A storage for @nestjs/throttler 6, also exported as `ThrottlerStorageService`. It counts in a sliding window, as
 * the original does. Its answers are promises that are resolved at once. It needs no timer.
 *
 * @example
 * ```ts
 * import { ThrottlerModule } from '@nestjs/throttler'
 * import { MillraceThrottlerStorage } from 'millrace/compat/nestjs-throttler'
 *
 * ThrottlerModule.forRoot({
 *   throttlers: [{ ttl: 60_000, limit: 10 }],
 *   storage: new MillraceThrottlerStorage(),
 * })
 * ```
 */
export class MillraceThrottlerStorage {
  readonly #windows: Windows<ThrottledWindow>
  /** Marks keys while they are blocked, by the length of the block. */
  readonly #blocks: Windows<Mark>
  readonly #decided: DecisionCounts

  /**
   * @param options for how many keys and windows. `maxLogLimit` is 100 by default, and counts up to 4,095
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
   */
  constructor(options: ThrottlerStorageOptions = {}) {
    checkOptions(options, ['maxKeys', 'maxWindows', 'maxLogLimit', 'nearLimit'])
    const clock = new WallClock()
    this.#decided = new DecisionCounts(options.nearLimit)
    const ofTtl = { maxLogLimit: MAX_LOG_LIMIT, ...options }
    this.#windows = new Windows((ttl, checked) => new ThrottledWindow(ttl, checked, clock), ofTtl, clock)
    this.#blocks = new Windows((ms, { maxKeys }) => new Mark(ms, maxKeys, clock), options, clock)
  }

  /**
   * Counts one hit, unless the key is blocked.
   * @param key the key
   * @param ttl the window in milliseconds. With 0 or less every hit is the first, as in the original
   * @param limit the most hits in a window
   * @param blockDuration how long a key is blocked that goes beyond the limit, in milliseconds. With 0 or less it
   * is refused until its oldest hit leaves the window
   * @param throttlerName hits of the same key with another name count apart; its block is the same
   * @returns a promise of the record
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_DURATION` for a `ttl` that is no number;
   * `ERR_MILLRACE_INVALID_OPTION` for one `ttl` or `blockDuration` more than `maxWindows`
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerStorageRecord> {
    this.#windows.clock.read()
    const name = String(throttlerName)
    const { wasBlocked, ...record } = this.#decide(key, ttl, limit, blockDuration, name)
    const { totalHits: hits, isBlocked: isRefused } = record
    this.#decided.countHit(name, { hits, allowed: !isRefused, isBlocked: wasBlocked }, limit)
    return record
  }

  #decide(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    name: string,
  ): ThrottlerStorageRecord & { readonly wasBlocked: boolean } {
    const window = ttl <= 0 ? new EmptyWindow(ttl) : this.#windows.of(ttl)
    const ownKey = keyOf(key)
    const hitsKey = keyOf(`${name.length} ${name}${ownKey}`)
    const timeToExpire = window.timeToExpire(ownKey)
    if (blockDuration <= 0)
      return { ...window.hitWithoutBlock(hitsKey, limit, timeToExpire), wasBlocked: false }
    const blockedMs = this.#blockedMs(ownKey)
    const wasBlocked = blockedMs > 0
    const totalHits = wasBlocked ? window.used(hitsKey) : window.hit(ownKey, hitsKey, limit)
    const isBlocked = wasBlocked || totalHits > limit
    if (!isBlocked) return { totalHits, timeToExpire, isBlocked, timeToBlockExpire: 0, wasBlocked }
    if (!wasBlocked) this.#blocks.of(blockDuration).set(ownKey)
    const timeToBlockExpire = secondsOf(blockedMs || blockDuration)
    return { totalHits, timeToExpire, isBlocked, timeToBlockExpire, wasBlocked }
  }

  /**
   * Returns what was decided by this storage, as {@link Limiter.stats} does, with the names of throttlers in place of
   * rules; the original has no such method. `blocked` are hits of a key that was blocked by `blockDuration` already.
   */
  stats(): LimiterStats {
    return statsOf([this.#decided], joined([this.#windows.tables, this.#blocks.tables]))
  }

  /** Forgets all keys and releases the memory. Nest calls it. The storage can be used again. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.#windows.close(), this.#blocks.close()])
  }

  #blockedMs(key: string): number {
    let longestMs = 0
    for (const block of this.#blocks.all()) longestMs = Math.max(longestMs, block.leftMs(key))
    return longestMs
  }
}
