/** In place of the limiter in memory of rate-limiter-flexible 11. */

import type { RateLimiterRes } from 'rate-limiter-flexible'
import * as flexible from 'rate-limiter-flexible'
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { LONGEST_TIMER_MS } from '../core/long-timer.js'
import { type FlexibleOptions, FlexibleSettings } from './flexible-settings.js'
import { FlexibleStore } from './flexible-store.js'
import { keyOf } from './keys.js'
import type { CompatOptions } from './options.js'

export type { CompatOptions, FlexibleOptions, Limiter, LimiterStats }
export { RateLimiterMillrace as RateLimiterMemory }

/** The options of one call. Others are not read. */
export interface FlexibleCallOptions extends FlexibleKeyOptions {
  /** Seconds, in place of `duration`, if the key has no points yet. With 0 they never return. */
  customDuration?: number
}

/** The options of `get`, `set`, `block` and `delete` of the original, which its limiter in memory does not read. */
export type FlexibleKeyOptions = Readonly<Record<string, unknown>>

/** A key, as the original takes it. */
export type Key = string | number

/** Its types declare properties where it has accessors, and a class can't have accessors in place of these. */
const Compatible = flexible.RateLimiterCompatibleAbstract as unknown as new () => object

/**
 * A limiter with the interface of rate-limiter-flexible 11, also exported as `RateLimiterMemory`. It extends its
 * `RateLimiterCompatibleAbstract`, so its unions, wrappers and queue take it, and `insuranceLimiter` does. Promises
 * are settled at once, except by `execEvenly`.
 *
 * In a sliding window, a key consumes at most `points` in any `duration`. Refused points count in `consumedPoints`
 * until the next admission, and don't hold it off. What `set`, `block`, `blockDuration` and `customDuration` begin
 * counts from that moment to its end, as in the original.
 *
 * @example
 * ```ts
 * import { RateLimiterMemory } from 'millrace/compat/rate-limiter-flexible'
 *
 * const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
 * await limiter.consume('user:42') // rejects with a RateLimiterRes beyond the limit
 * ```
 */
export class RateLimiterMillrace extends Compatible {
  readonly #settings: FlexibleSettings
  readonly #store: FlexibleStore
  /** The calls that are delayed. */
  #delayed = 0

  /**
   * @param options the limit, and for how many keys: those of the original, and {@link CompatOptions}
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
   */
  constructor(options: FlexibleOptions & CompatOptions = NO_OPTIONS) {
    super()
    this.#settings = new FlexibleSettings(options)
    const { algorithm, maxKeys, maxWindows, maxLogLimit, nearLimit } = options
    const own = { algorithm, maxKeys, maxWindows, maxLogLimit, nearLimit }
    this.#store = new FlexibleStore(this.#settings, own)
  }

  /**
   * Consumes points.
   * @param key a string or a number
   * @param pointsToConsume an integer; below 0: as `reward`. Default: 1
   * @param options of this call
   * @returns a promise; it rejects with a `RateLimiterRes` beyond `points`, and with `ERR_MILLRACE_INVALID_COST`
   * or `ERR_MILLRACE_INVALID_KEY`
   */
  consume(key: Key, pointsToConsume = 1, options: FlexibleCallOptions = {}): Promise<RateLimiterRes> {
    return new Promise((resolve, reject) => {
      const { isAdmitted, res } = this.#store.consume(
        this.#ownKey(key),
        pointsToConsume,
        options?.customDuration,
      )
      if (!isAdmitted) reject(res)
      else if (this.#isDelayed(res)) this.#resolveLater(res, resolve)
      else resolve(res)
    })
  }

  /**
   * Adds points to those that a key has consumed.
   * @param key a string or a number
   * @param points an integer. Default: 1
   * @param options of this call
   */
  async penalty(key: Key, points = 1, options: FlexibleCallOptions = {}): Promise<RateLimiterRes> {
    return this.#store.add(this.#ownKey(key), points, options?.customDuration)
  }

  /**
   * Takes points back. A key may have below 0, and can then consume more.
   * @param key a string or a number
   * @param points an integer. Default: 1
   * @param options of this call
   */
  async reward(key: Key, points = 1, options: FlexibleCallOptions = {}): Promise<RateLimiterRes> {
    return this.#store.add(this.#ownKey(key), -points, options?.customDuration)
  }

  /**
   * Returns the points of a key; null for an unknown one.
   * @param key a string or a number
   */
  async get(key: Key, _options?: FlexibleKeyOptions): Promise<RateLimiterRes | null> {
    return this.#store.get(this.#ownKey(key))
  }

  /**
   * Sets the points that a key has consumed.
   * @param key a string or a number
   * @param points an integer
   * @param secDuration for how many seconds; 0 or less: for ever
   */
  async set(
    key: Key,
    points: number,
    secDuration: number,
    _options?: FlexibleKeyOptions,
  ): Promise<RateLimiterRes> {
    this.#store.set(this.#ownKey(key), points, secDuration)
    const seconds = secDuration >= 0 ? secDuration : this.duration
    return new flexible.RateLimiterRes(0, seconds === 0 ? -1 : seconds * 1000, points)
  }

  /**
   * Refuses a key: sets its points to one above the limit.
   * @param key a string or a number
   * @param secDuration for how many seconds; 0 or less: for ever
   */
  async block(key: Key, secDuration: number, _options?: FlexibleKeyOptions): Promise<RateLimiterRes> {
    const points = this.points + 1
    this.#store.set(this.#ownKey(key), Math.ceil(points), secDuration, true)
    return new flexible.RateLimiterRes(0, secDuration === 0 ? -1 : secDuration * 1000, points)
  }

  /**
   * Forgets a key.
   * @param key a string or a number
   * @returns whether anything was known of it
   */
  async delete(key: Key, _options?: FlexibleKeyOptions): Promise<boolean> {
    return this.#store.delete(this.#ownKey(key))
  }

  /**
   * Returns what `consume` has decided, as {@link Limiter.stats} does, with `keyPrefix` as the name of the rule; the
   * original has no such method. `blocked` are calls for a key that `block` or `blockDuration` had blocked already,
   * `waiting` those that `execEvenly` delays.
   */
  stats(): LimiterStats {
    return this.#store.stats(this.#delayed)
  }

  /** Forgets all keys and releases the memory. The limiter can be used again. */
  async close(): Promise<void> {
    await this.#store.close()
  }

  /** The key with the prefix. */
  getKey(key: Key): string {
    return this.keyPrefix.length > 0 ? `${this.keyPrefix}:${key}` : (key as string)
  }

  /** The key of a key with the prefix. */
  parseKey(rlKey: string): string {
    return this.keyPrefix.length > 0 ? rlKey.substring(this.keyPrefix.length + 1) : rlKey
  }

  /** How many points can be consumed in `duration`. */
  get points(): number {
    return this.#settings.points
  }

  set points(value: number) {
    this.#settings.points = value
  }

  /** Seconds; 0: points never return. */
  get duration(): number {
    return this.#settings.duration
  }

  set duration(value: number) {
    this.#settings.duration = value
  }

  /** `duration` in milliseconds. */
  get msDuration(): number {
    return this.duration * 1000
  }

  /** How many seconds a key is refused that has consumed too much; 0: until points return. */
  get blockDuration(): number {
    return this.#settings.blockDuration
  }

  set blockDuration(value: number | undefined) {
    this.#settings.blockDuration = value
  }

  /** `blockDuration` in milliseconds. */
  get msBlockDuration(): number {
    return this.blockDuration * 1000
  }

  /** Whether admitted calls are delayed, to spread them over `duration`. */
  get execEvenly(): boolean {
    return this.#settings.execEvenly
  }

  set execEvenly(value: boolean | undefined) {
    this.#settings.execEvenly = value
  }

  /** The shortest of these delays, in milliseconds. */
  get execEvenlyMinDelayMs(): number {
    return this.#settings.execEvenlyMinDelayMs
  }

  set execEvenlyMinDelayMs(value: number | undefined) {
    this.#settings.execEvenlyMinDelayMs = value
  }

  /** Begins every key. */
  get keyPrefix(): string {
    return this.#settings.keyPrefix
  }

  set keyPrefix(value: string | undefined) {
    this.#settings.keyPrefix = value
  }

  #ownKey(key: Key): string {
    return keyOf(this.getKey(key))
  }

  #isDelayed({ msBeforeNext, isFirstInDuration }: RateLimiterRes): boolean {
    return this.execEvenly && this.points > 0 && msBeforeNext > 0 && !isFirstInDuration
  }

  #resolveLater(res: RateLimiterRes, resolve: (res: RateLimiterRes) => void): void {
    const { msBeforeNext, remainingPoints, consumedPoints, isFirstInDuration } = res
    const delayMs = this.#settings.delayMs(msBeforeNext, remainingPoints, consumedPoints)
    const leftMs = Math.max(msBeforeNext - delayMs, 0)
    const later = new flexible.RateLimiterRes(remainingPoints, leftMs, consumedPoints, isFirstInDuration)
    this.#delayed++
    const resolveNow = () => {
      this.#delayed--
      resolve(later)
    }
    setTimeout(resolveNow, Math.min(delayMs, LONGEST_TIMER_MS))
  }
}
/** Without options the constructor says that `points` are missing. */
const NO_OPTIONS = {} as FlexibleOptions
