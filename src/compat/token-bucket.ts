import { checkObject } from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import { checkNearLimit } from '../core/near-limit.js'
import { NO_TABLE } from '../core/no-table.js'
import { Fifo, sleep } from './fifo.js'
import { statsOf } from './stats.js'
import { TokenCounts } from './token-counts.js'
import { WallClock } from './wall-clock.js'

const clock = new WallClock()

/** The time in milliseconds, by `Date.now`. It never steps back. */
export function nowMs(): number {
  clock.read()
  return clock.now()
}

/** A length of time: milliseconds above 0, or a unit. */
export type Interval = number | 'second' | 'sec' | 'minute' | 'min' | 'hour' | 'hr' | 'day'

const INTERVALS_MS: Readonly<Record<string, number>> = {
  sec: 1_000,
  second: 1_000,
  min: 60_000,
  minute: 60_000,
  hr: 3_600_000,
  hour: 3_600_000,
  day: 86_400_000,
}

/** The options of {@link TokenBucket}. */
export interface TokenBucketOptions {
  /** How many tokens the bucket holds: 0 or more, fractions included. 0: no limit. */
  bucketSize: number
  /** How many tokens come in an interval: 0 or more. 0: the bucket is always full. */
  tokensPerInterval: number
  interval: Interval
  /** A bucket from which each token is taken, too. */
  parentBucket?: TokenBucket | undefined
  /**
   * From which share of `bucketSize` on its use is near it, for `nearLimit` in `stats()`: above 0, at most 1.
   * @default 0.8
   */
  nearLimit?: number
}

/**
 * A bucket of tokens with the interface of limiter 4. It is empty at first. Its state is in this object, as in the
 * original: threads don't share it.
 *
 * @example
 * ```ts
 * import { TokenBucket } from 'millrace/compat/limiter'
 *
 * const bucket = new TokenBucket({ bucketSize: 150_000, tokensPerInterval: 50_000, interval: 'second' })
 * await bucket.removeTokens(10_000) // bytes
 * ```
 */
export class TokenBucket {
  bucketSize: number
  tokensPerInterval: number
  /** Milliseconds. */
  interval: number
  parentBucket: TokenBucket | undefined
  /** The tokens at `lastDrip`, a fraction included. */
  content = 0
  /** When tokens last came, in milliseconds. */
  lastDrip: number
  #requests: Fifo | undefined
  readonly #nearLimit: number | undefined
  /** The bucket of a `RateLimiter` has none. */
  #decided: TokenCounts | undefined

  /**
   * @param options how many tokens it holds, and how fast they come
   * @throws {RangeError} a number out of range; {@link Error} an unknown unit; {@link MillraceError}
   * `ERR_MILLRACE_INVALID_OPTION` no object
   */
  constructor(options: TokenBucketOptions) {
    checkObject(options)
    const { bucketSize, tokensPerInterval, interval, parentBucket } = options
    checkTokens(bucketSize, 'bucketSize')
    checkTokens(tokensPerInterval, 'tokensPerInterval')
    this.bucketSize = bucketSize
    this.tokensPerInterval = tokensPerInterval
    this.interval = msOf(interval)
    this.parentBucket = parentBucket
    this.lastDrip = nowMs()
    this.#nearLimit = checkNearLimit(options.nearLimit)
  }

  /**
   * Takes tokens as soon as there are enough, after all calls before.
   * @param count how many: 0 or more, at most `bucketSize`
   * @returns a promise of the tokens that are left, in the emptiest of the parents, too
   * @throws {RangeError} (rejects) a count that never fits
   */
  async removeTokens(count: number): Promise<number> {
    this.getWaitTime(count)
    this.#requests ??= new Fifo()
    return this.#requests.run(async () => {
      while (!this.tryRemoveTokens(count)) await sleep(this.getWaitTime(count))
      return this.#remaining()
    })
  }

  /**
   * Takes tokens if there are enough, in all parents, too.
   * @param count how many: 0 or more
   * @throws {RangeError}
   */
  tryRemoveTokens(count: number): boolean {
    checkTokens(count, 'count')
    const allowed = this.takeAt(nowMs(), count)
    this.#counts.count(allowed, this.bucketSize - this.content, this.bucketSize)
    return allowed
  }

  /**
   * Returns what was decided by this bucket, as {@link Limiter.stats} does; the original has no such method. `waiting` are
   * pending calls of `removeTokens`, each attempt of which is counted.
   */
  stats(): LimiterStats {
    return statsOf([this.#counts], NO_TABLE, { waiting: this.#requests?.pending ?? 0 })
  }

  get #counts(): TokenCounts {
    this.#decided ??= new TokenCounts(this.#nearLimit)
    return this.#decided
  }

  /** @internal Takes tokens by a reading of {@link nowMs}. Returns whether there were enough. */
  takeAt(now: number, count: number): boolean {
    if (this.bucketSize === 0) return true
    if (this.parentBucket !== undefined) return this.#takeFromAll(now, count)
    if (count > this.bucketSize) return false
    this.dripAt(now)
    if (count > this.content) return false
    this.content -= count
    return true
  }

  #takeFromAll(now: number, count: number): boolean {
    const buckets = this.#limiting()
    for (const bucket of buckets) {
      if (count > bucket.bucketSize) return false
      bucket.dripAt(now)
      if (count > bucket.content) return false
    }
    for (const bucket of buckets) bucket.content -= count
    return true
  }

  /**
   * Returns the whole milliseconds until there are enough tokens, in all parents, too.
   * @param count how many: 0 or more, at most `bucketSize`
   * @throws {RangeError}
   */
  getWaitTime(count: number): number {
    checkTokens(count, 'count')
    let waitMs = 0
    for (const bucket of this.#limiting()) {
      if (count > bucket.bucketSize) {
        throw new RangeError(`count: ${count} tokens never fit into a bucket of ${bucket.bucketSize}`)
      }
      bucket.drip()
      const missing = count - bucket.content
      if (missing > 0)
        waitMs = Math.max(waitMs, Math.ceil(missing / (bucket.tokensPerInterval / bucket.interval)))
    }
    return waitMs
  }

  /**
   * Adds the tokens that have come.
   * @returns whether there is a whole token more; of a bucket that is always full, whether it was not
   */
  drip(): boolean {
    return this.dripAt(nowMs())
  }

  /** @internal Adds the tokens that have come by a reading of {@link nowMs}. Returns what `drip` does. */
  dripAt(now: number): boolean {
    const before = this.content
    if (this.tokensPerInterval === 0) {
      this.content = this.bucketSize
      return this.content > before
    }
    const passedMs = Math.max(0, now - this.lastDrip)
    const rate = this.tokensPerInterval / this.interval // as in the original, so that fractions are the same
    const come = Number.isFinite(rate) ? passedMs * rate : (passedMs * this.tokensPerInterval) / this.interval
    this.lastDrip = now
    this.content = Math.min(before + come, this.bucketSize)
    return Math.floor(this.content) > Math.floor(before)
  }

  /** This bucket and its parents, up to the first one without a limit. */
  #limiting(): TokenBucket[] {
    const buckets: TokenBucket[] = []
    for (let bucket: TokenBucket | undefined = this; bucket; bucket = bucket.parentBucket) {
      if (bucket.bucketSize === 0) break
      if (buckets.includes(bucket)) throw new Error('parentBucket: a bucket is its own parent')
      buckets.push(bucket)
    }
    return buckets
  }

  #remaining(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#limiting().map(({ content }) => content))
  }
}

/** @throws {RangeError} unless it is a number of tokens */
export function checkTokens(value: number, name: string): void {
  if (Number.isFinite(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER) return
  throw new RangeError(`${name}: expected a number from 0 to Number.MAX_SAFE_INTEGER, got ${String(value)}`)
}

function msOf(interval: Interval): number {
  const ms = typeof interval === 'string' ? INTERVALS_MS[interval] : interval
  if (ms === undefined) throw new Error(`interval: expected a number or a unit, got ${String(interval)}`)
  if (Number.isFinite(ms) && ms > 0) return ms
  throw new RangeError(`interval: expected milliseconds above 0, got ${String(interval)}`)
}
