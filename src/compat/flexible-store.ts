import type { RateLimiterRes } from 'rate-limiter-flexible'
import * as flexible from 'rate-limiter-flexible'
import type { LimiterStats } from '../api/limiter.js'
import { DecisionCounts } from '../core/decision-counts.js'
import type { Count } from './counts.js'
import type { FlexibleSettings } from './flexible-settings.js'
import { type CompatOptions, checkCompatOptions } from './options.js'
import { checkPoints, type Found, findRecord, openRecord, Records } from './records.js'
import { SlidingCounts } from './sliding-counts.js'
import { joined, RULE, statsOf } from './stats.js'
import { WallClock } from './wall-clock.js'
import { Windows } from './windows.js'

/** The answer to `consume`. */
export interface Consumed {
  readonly isAdmitted: boolean
  readonly res: RateLimiterRes
}

/**
 * The points of all keys of a limiter. A key has either a record, which counts from its opening to its end, or
 * points in the sliding window of the limiter's duration.
 */
export class FlexibleStore {
  readonly #settings: FlexibleSettings
  readonly #isFixed: boolean
  readonly #clock = new WallClock()
  /** By their length in milliseconds. */
  readonly #records: Windows<Records>
  readonly #sliding: Windows<SlidingCounts>
  readonly #decided: DecisionCounts

  /** @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` */
  constructor(settings: FlexibleSettings, given: { readonly [Name in keyof CompatOptions]: unknown }) {
    const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    this.#settings = settings
    this.#records = new Windows((ms, checked, clock) => new Records(ms, checked, clock), options, this.#clock)
    this.#sliding = new Windows(
      (ms, checked, clock) => new SlidingCounts(ms, checked, clock),
      options,
      this.#clock,
    )
    const { algorithm, nearLimit } = checkCompatOptions(options)
    this.#isFixed = algorithm === 'fixed-window'
    this.#decided = new DecisionCounts(nearLimit)
  }

  consume(key: string, points: number, customDuration?: number): Consumed {
    checkPoints(points)
    this.#clock.read()
    const { points: limit, blockDuration, keyPrefix } = this.#settings
    const found = findRecord(this.#records, key)
    const res = this.#add(found, key, points, customDuration, limit)
    const consumed = res.consumedPoints
    const allowed = consumed <= limit
    const isBlocked = !allowed && found?.records.isBlock(key) === true
    this.#decided.countHit(keyPrefix || RULE, { hits: consumed, allowed, isBlocked }, limit)
    if (allowed) return { isAdmitted: true, res }
    const isFirstBeyond = consumed <= limit + points
    if (!(blockDuration > 0) || !isFirstBeyond) return { isAdmitted: false, res }
    this.#open(key, consumed, blockDuration * 1000, true)
    return { isAdmitted: false, res: new flexible.RateLimiterRes(0, blockDuration * 1000, consumed, true) }
  }

  /** Adds points without a decision; below 0: takes them out. */
  add(key: string, points: number, customDuration?: number): RateLimiterRes {
    checkPoints(points)
    this.#clock.read()
    return this.#add(findRecord(this.#records, key), key, points, customDuration)
  }

  get(key: string): RateLimiterRes | null {
    this.#clock.read()
    const found = findRecord(this.#records, key)
    if (found) return this.#resOf(found.records.value(key), msOf(found), false)
    const count = this.#counts()?.read(key, this.#settings.points)
    return count ? this.#resOf(count.hits, count.resetMs, false) : null
  }

  /** @param blocks whether it is a block */
  set(key: string, points: number, secDuration: number, blocks = false): void {
    checkPoints(points)
    this.#clock.read()
    this.#open(key, points, secDuration * 1000, blocks)
  }

  delete(key: string): boolean {
    this.#clock.read()
    const counts = this.#counts()
    const isKnown =
      findRecord(this.#records, key) !== undefined || counts?.read(key, this.#settings.points) !== undefined
    for (const records of this.#records.all()) records.clear(key)
    counts?.clear(key)
    return isKnown
  }

  /** @param waiting how many admitted calls are delayed */
  stats(waiting: number): LimiterStats {
    return statsOf([this.#decided], joined([this.#records.tables, this.#sliding.tables]), { waiting })
  }

  async close(): Promise<void> {
    await Promise.all([this.#records.close(), this.#sliding.close()])
  }

  /** `limit`: the most points that are admitted in the sliding window. Without it, all are. */
  #add(
    found: Found | undefined,
    key: string,
    points: number,
    customDuration: number | undefined,
    limit?: number,
  ): RateLimiterRes {
    if (found) return this.#resOf(found.records.add(key, points), msOf(found), false)
    const counts = this.#counts()
    if (counts === undefined) return this.#first(key, points, customDuration)
    const isOther = this.#isOtherDuration(customDuration)
    if (points > 0 && !isOther) {
      const wasEmptied = counts.isEmptied(key)
      const { hits, resetMs } = this.#hit(counts, key, points, limit)
      return this.#resOf(hits, resetMs, hits === points && !wasEmptied)
    }
    const known = counts.read(key, this.#settings.points)
    if (known === undefined && isOther) return this.#first(key, points, customDuration)
    if (points > 0) {
      const { hits, resetMs } = this.#hit(counts, key, points, limit)
      return this.#resOf(hits, resetMs, false)
    }
    const left = (known?.hits ?? 0) + points
    if (left < 0) return this.#goBelowZero(key, left, known?.resetMs)
    counts.take(key, this.#settings.points, -points)
    return this.#resOf(left, known?.resetMs || this.#settings.duration * 1000, known === undefined)
  }

  /** A penalty has just the limit that it needs, so few points are in a log. It leaves the refused ones. */
  #hit(counts: SlidingCounts, key: string, points: number, limit: number | undefined): Count {
    if (limit !== undefined) return counts.hit(key, limit, points)
    const { points: ownLimit } = this.#settings
    counts.hit(key, Math.max(ownLimit, counts.used(key) + points), points)
    return counts.read(key, ownLimit)!
  }

  /** Opens the record of a key that has no points. */
  #first(key: string, points: number, customDuration: number | undefined): RateLimiterRes {
    const ms = this.#secondsOf(customDuration) * 1000
    this.#open(key, points, ms)
    return this.#resOf(points, ms > 0 ? ms : -1, true)
  }

  /** No sliding window has points below 0: a record has, until a hit would have left. */
  #goBelowZero(key: string, points: number, resetMs: number | undefined): RateLimiterRes {
    const ms = resetMs || this.#settings.duration * 1000
    this.#open(key, points, ms)
    return this.#resOf(points, ms, resetMs === undefined)
  }

  #open(key: string, points: number, ms: number, blocks = false): void {
    this.#counts()?.clear(key)
    openRecord(this.#records, key, points, ms, blocks)
  }

  /** The counts in the sliding window, if there is one. */
  #counts(): SlidingCounts | undefined {
    const { duration } = this.#settings
    return this.#isFixed || duration === 0 ? undefined : this.#sliding.of(duration * 1000)
  }

  #isOtherDuration(customDuration: number | undefined): boolean {
    return this.#secondsOf(customDuration) !== this.#settings.duration
  }

  #secondsOf(customDuration: number | undefined): number {
    return customDuration !== undefined && customDuration >= 0 ? customDuration : this.#settings.duration
  }

  #resOf(consumed: number, msBeforeNext: number, isFirst: boolean): RateLimiterRes {
    const left = Math.max(this.#settings.points - consumed, 0)
    return new flexible.RateLimiterRes(left, msBeforeNext, consumed, isFirst)
  }
}

/** Milliseconds until a record ends; -1: never, as rate-limiter-flexible has it. */
const msOf = ({ leftMs }: Found): number => (leftMs === Number.POSITIVE_INFINITY ? -1 : leftMs)
