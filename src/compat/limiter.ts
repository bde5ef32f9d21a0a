/** In place of the package limiter 4. */
import { checkObject } from '../api/checks.js'
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { NO_TABLE } from '../core/no-table.js'
import { Fifo, sleep } from './fifo.js'
import { joined, statsOf } from './stats.js'
import { checkTokens, type Interval, nowMs, TokenBucket } from './token-bucket.js'
import { TokenCounts } from './token-counts.js'

export {
  type Interval,
  TokenBucket,
  type TokenBucketOptions,
  type TokenBucketOptions as TokenBucketOpts,
} from './token-bucket.js'

/** The options of {@link RateLimiter}: as in the original, or a key of a limiter of yours. */
export type RateLimiterOptions = IntervalOptions | SharedOptions

/** The options of the original, by its name for them. */
export type RateLimiterOpts = IntervalOptions

/** The options of the original. */
export interface IntervalOptions {
  /** How many tokens may be taken in an interval: 0 or more. */
  tokensPerInterval: number
  interval: Interval
  /** Whether `removeTokens` answers at once, with -1 if there are not enough tokens. Default: false */
  fireImmediately?: boolean
  /**
   * From which share of the tokens on their use is near the limit, for `nearLimit` in `stats()`: above 0, at most 1.
   * @default 0.8
   */
  nearLimit?: number
}

/** Tokens are the units of a key. All threads and processes that use the limiter share them. */
export interface SharedOptions {
  /** A limiter of {@link createLimiter} or {@link openLimiter}, by any algorithm. */
  limiter: Limiter
  /** @default 'tokens' */
  key?: string
  /** @see IntervalOptions.fireImmediately */
  fireImmediately?: boolean
  /**
   * From which share of the tokens on their use is near the limit, for `nearLimit` in `stats()`: above 0, at most 1.
   * @default 0.8
   */
  nearLimit?: number
}

/** Where tokens come from. */
interface Tokens {
  /** The most that may be taken at once. */
  readonly most: number
  tryRemove(count: number): boolean
  /** Whole milliseconds until so many can be taken. */
  waitMs(count: number): number
  remaining(): number
  /** How many are used, after `tryRemove`. */
  readonly used: number
  /** What the limiter says that has them. */
  stats(): LimiterStats | undefined
}

/**
 * A rate limiter with the interface of limiter 4. Its tokens come evenly, and at most `tokensPerInterval` are taken
 * in each interval that begins with a call. With the option `limiter` they are the units of a key: one limit for all
 * threads or processes, by any algorithm, `'sliding-window'` too, which never admits more in any interval.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'millrace/compat/limiter'
 *
 * const limiter = new RateLimiter({ tokensPerInterval: 150, interval: 'hour' })
 * const remaining = await limiter.removeTokens(1)
 * ```
 */
export class RateLimiter {
  fireImmediately: boolean
  readonly #tokens: Tokens
  #requests: Fifo | undefined
  readonly #decided: TokenCounts

  /**
   * @param options how many tokens come, or the limiter that has them
   * @throws {RangeError} a number out of range; {@link Error} an unknown unit; {@link MillraceError}
   * `ERR_MILLRACE_INVALID_OPTION` no object
   */
  constructor(options: RateLimiterOptions) {
    checkObject(options)
    this.fireImmediately = options.fireImmediately ?? false
    this.#decided = new TokenCounts(options.nearLimit)
    this.#tokens = 'limiter' in options ? new SharedTokens(options) : new IntervalTokens(options)
  }

  /**
   * Takes tokens as soon as there are enough, after all calls before; with `fireImmediately` at once.
   * @param count how many: 0 or more, at most `tokensPerInterval`
   * @returns a promise of the tokens that are left; -1 if there were not enough
   * @throws {RangeError} (rejects) a count that never fits
   */
  async removeTokens(count: number): Promise<number> {
    this.#checkCount(count)
    if (this.fireImmediately) return this.#tryRemove(count) ? this.#tokens.remaining() : -1
    this.#requests ??= new Fifo()
    return this.#requests.run(async () => {
      while (!this.#tryRemove(count)) await sleep(this.#tokens.waitMs(count))
      return this.#tokens.remaining()
    })
  }

  /**
   * Takes tokens if there are enough.
   * @param count how many: 0 or more. More than `tokensPerInterval` are never taken
   * @throws {RangeError}
   */
  tryRemoveTokens(count: number): boolean {
    checkTokens(count, 'count')
    return this.#tryRemove(count)
  }

  /**
   * Returns what was decided by this object, as {@link Limiter.stats} does; the original has no such method. `waiting` are
   * pending calls of `removeTokens`, each attempt of which is counted. With the option `limiter`, the table and `shared`
   * are those of the limiter.
   */
  stats(): LimiterStats {
    const { shared, ...tables } = this.#tokens.stats() ?? { ...NO_TABLE, shared: undefined }
    return statsOf([this.#decided], joined([tables]), { waiting: this.#requests?.pending ?? 0, shared })
  }

  /**
   * Returns the whole milliseconds until so many tokens can be taken, if no other call takes any.
   * @param count how many: 0 or more, at most `tokensPerInterval`
   * @throws {RangeError}
   */
  getWaitTime(count: number): number {
    this.#checkCount(count)
    return this.#tokens.waitMs(count)
  }

  /** Returns the tokens that there are. */
  getTokensRemaining(): number {
    return this.#tokens.remaining()
  }

  /** The bucket; undefined with the option `limiter`. */
  get tokenBucket(): TokenBucket {
    return (this.#tokens as Partial<IntervalTokens>).bucket!
  }

  /** When the present interval began, in milliseconds; undefined with the option `limiter`. */
  get curIntervalStart(): number {
    return (this.#tokens as Partial<IntervalTokens>).startMs!
  }

  /** How many tokens were taken in it; undefined with the option `limiter`. */
  get tokensThisInterval(): number {
    return (this.#tokens as Partial<IntervalTokens>).taken!
  }

  #tryRemove(count: number): boolean {
    const { most } = this.#tokens
    const allowed = count <= most && this.#tokens.tryRemove(count)
    this.#decided.count(allowed, this.#tokens.used, most)
    return allowed
  }

  #checkCount(count: number): void {
    checkTokens(count, 'count')
    const { most } = this.#tokens
    if (count > most) throw new RangeError(`count: ${count} tokens never fit, the most is ${most}`)
  }
}

/** Those of the original: a bucket, and a count for each interval. */
class IntervalTokens implements Tokens {
  readonly bucket: TokenBucket
  startMs: number
  taken = 0

  constructor({ tokensPerInterval, interval }: IntervalOptions) {
    this.bucket = new TokenBucket({ bucketSize: tokensPerInterval, tokensPerInterval, interval })
    this.bucket.content = tokensPerInterval
    this.startMs = nowMs()
  }

  get most(): number {
    return this.bucket.bucketSize
  }

  get used(): number {
    return Math.max(this.taken, this.most - this.bucket.content)
  }

  stats(): undefined {}

  tryRemove(count: number): boolean {
    const now = nowMs()
    if (now - this.startMs >= this.bucket.interval) {
      this.startMs = now
      this.taken = 0
    }
    if (count > this.#leftInInterval() || !this.bucket.takeAt(now, count)) return false
    this.taken += count
    return true
  }

  waitMs(count: number): number {
    const endsInMs = this.startMs + this.bucket.interval - nowMs()
    const ofInterval = endsInMs > 0 && count > this.#leftInInterval() ? Math.ceil(endsInMs) : 0
    return Math.max(ofInterval, this.bucket.getWaitTime(count))
  }

  remaining(): number {
    this.bucket.drip()
    return this.bucket.content
  }

  #leftInInterval(): number {
    return this.bucket.tokensPerInterval - this.taken
  }
}

/** Those of a key. A count with a fraction takes the next whole number. */
class SharedTokens implements Tokens {
  readonly #limiter: Limiter
  readonly #key: string
  used = 0

  constructor({ limiter, key = 'tokens' }: SharedOptions) {
    this.#limiter = limiter
    this.#key = key
  }

  get most(): number {
    return Math.min(...this.#limiter.rules.map(({ limit }) => limit))
  }

  tryRemove(count: number): boolean {
    const { allowed, rules } = this.#limiter.check(this.#key, Math.ceil(count))
    const usedShares = rules.map(({ limit, remaining }) => (limit - remaining) / limit)
    this.used = Math.max(...usedShares) * this.most
    return allowed
  }

  stats(): LimiterStats {
    return this.#limiter.stats()
  }

  waitMs(count: number): number {
    return this.#limiter.peek(this.#key, Math.ceil(count)).retryAfterMs
  }

  remaining(): number {
    return this.#limiter.peek(this.#key).remaining
  }
}
