import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { type Count, type Counts, type TakeOrder, wholeLimit } from './counts.js'
import { FixedCounts } from './fixed-counts.js'
import { Mark } from './mark.js'
import type { CheckedOptions } from './options.js'
import { BucketTier, LogTier, type Tier } from './tiers.js'

/** The most units of the small log: a key takes 125 bytes in it, and 340 in one of 59. */
const SMALL_LOG = 16

/**
 * Counts in a sliding window. A hit beyond the limit is refused, and kept apart: it counts in what is answered, but
 * does not hold off the next admission. So a client that goes on asking is admitted at its limit.
 *
 * Admitted hits with a limit of up to 16 are in a small log, those with one of up to `maxLogLimit` in a larger log, all
 * others in buckets. A key whose limit changes between these tiers has hits in several; all count.
 *
 * `openings` marks a key for a window from its first hit, and again from the first one after that. What is answered
 * to an admission as its reset is the end of this mark: one of the hits leaves then, and it is when a fixed window
 * would end.
 */
export class SlidingCounts implements Counts {
  readonly #windowMs: number
  readonly #options: CheckedOptions
  readonly #clock: Clock
  readonly #openings: Mark
  /** The largest limit of each log, in ascending order. */
  readonly #logLimits: readonly number[]
  /** The logs, then the buckets: those that have been used. */
  readonly #tiers: (Tier | undefined)[] = []
  /** The refused hits of a key, for a window from the first one on. */
  #refused: FixedCounts | undefined
  /** Marks keys whose hits were all taken back: they are known, with 0 hits, until their window ends. */
  #emptied: Mark | undefined

  constructor(windowMs: number, options: CheckedOptions, clock: Clock) {
    this.#windowMs = windowMs
    this.#options = options
    this.#clock = clock
    const { maxLogLimit } = options
    this.#logLimits = [SMALL_LOG, maxLogLimit].filter((most, i) => (i === 0 ? most < maxLogLimit : most > 0))
    this.#openings = new Mark(windowMs, options.maxKeys, clock)
  }

  hit(key: string, limit: number, cost = 1): Count {
    const hits = this.admit(key, limit, cost)
    if (hits === 0) return this.#refuse(key, cost)
    if (hits === cost) this.#refused?.clear(key) // of the window before
    return { hits, allowed: true, resetMs: this.#openings.add(key) || this.#windowMs }
  }

  /** Counts `cost` more hits if they are within the limit. Returns the hits of the key, or 0 if they are not. */
  admit(key: string, limit: number, cost: number): number {
    const whole = wholeLimit(limit)
    const tier = this.#tierOf(whole)
    let others = 0
    for (const other of this.#tiers) if (other !== tier) others += other?.used(key) ?? 0
    if (others >= whole) return 0
    const used = tier.admit(key, whole - others, cost)
    return used === 0 ? 0 : used + others
  }

  read(key: string, limit: number): Count | undefined {
    const whole = wholeLimit(limit)
    const used = this.used(key)
    const refused = used >= whole ? this.#refusedOf(key) : 0
    const hits = used + refused
    if (hits > 0) {
      const openMs = refused > 0 ? 0 : this.#openings.leftMs(key)
      return { hits, allowed: hits <= whole, resetMs: openMs || this.oldestMs(key) || this.#refusedMs(key) }
    }
    const resetMs = this.#emptied?.has(key) ? this.#windowEndsInMs(key) : 0
    return resetMs === 0 ? undefined : { hits: 0, allowed: true, resetMs }
  }

  take(key: string, limit: number, cost: number, order: TakeOrder = 'refused-first'): void {
    const isFull = this.used(key) >= wholeLimit(limit)
    const mayRefused = isFull ? Math.min(cost, this.#refusedOf(key)) : 0
    let left = cost
    if (order === 'refused-first') left -= this.#takeRefused(key, mayRefused)
    left -= this.#takeAdmitted(key, left)
    if (order === 'admitted-first') this.#takeRefused(key, Math.min(left, mayRefused))
    if (this.used(key) > 0) return
    if (wholeLimit(limit) > 0) this.#openings.add(key)
    else this.#refusals().take(key, limit, 0) // opens a window
    this.#emptied ??= new Mark(this.#windowMs, this.#options.maxKeys, this.#clock)
    this.#emptied.set(key)
  }

  /** Whether all hits of a key were taken back, in its present window. It may have others since. */
  isEmptied(key: string): boolean {
    return this.#emptied?.has(key) === true && this.#windowEndsInMs(key) > 0
  }

  restart(key: string, limit: number): void {
    const used = this.used(key)
    for (const tier of this.#tiers) tier?.clear(key)
    if (used > 0) {
      this.#tierOf(Math.max(wholeLimit(limit), used)).add(key, used)
      this.#openings.set(key)
    }
    this.#refused?.restart(key)
  }

  /** The admitted hits of a key. */
  used(key: string): number {
    let used = 0
    for (const tier of this.#tiers) used += tier?.used(key) ?? 0
    return used
  }

  /** Whole milliseconds until the oldest admitted hit leaves; 0 if there is none. */
  oldestMs(key: string): number {
    return this.#admitted(key).oldestMs
  }

  clear(key: string): void {
    for (const part of this.#parts()) part.clear(key)
  }

  clearAll(): void {
    for (const part of this.#parts()) part.clearAll()
  }

  limiters(): readonly Limiter[] {
    return this.#parts().flatMap((part) => part.limiters())
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts().map((part) => part.close()))
  }

  #refuse(key: string, cost: number): Count {
    const refused = this.#refusals().hit(key, 0, cost)
    const { used, oldestMs } = this.#admitted(key)
    return { hits: used + refused.hits, allowed: false, resetMs: oldestMs || refused.resetMs }
  }

  /** The admitted hits of a key, and whole milliseconds until the oldest leaves; 0 if there is none. */
  #admitted(key: string): { used: number; oldestMs: number } {
    let used = 0
    let oldestMs = this.#windowMs
    for (const tier of this.#tiers) {
      const inTier = tier?.used(key) ?? 0
      if (inTier > 0) oldestMs = Math.min(oldestMs, tier!.oldestMs(key, inTier))
      used += inTier
    }
    return { used, oldestMs: used > 0 ? oldestMs : 0 }
  }

  /** Takes back up to `cost` admitted hits, the oldest first. Returns how many. */
  #takeAdmitted(key: string, cost: number): number {
    let left = cost
    while (left > 0) {
      const [oldest, another] = this.#tiersOf(key)
      const taken = oldest?.take(key, another === undefined ? left : 1) ?? 0
      if (taken === 0) break
      left -= taken
    }
    return cost - left
  }

  /** The tiers in which a key has hits, that of its oldest hit first. */
  #tiersOf(key: string): Tier[] {
    const tiers: { tier: Tier; oldestMs: number }[] = []
    for (const tier of this.#tiers) {
      const used = tier?.used(key) ?? 0
      if (used > 0) tiers.push({ tier: tier!, oldestMs: tier!.oldestMs(key, used) })
    }
    return tiers.sort((a, b) => a.oldestMs - b.oldestMs).map(({ tier }) => tier)
  }

  /** Takes back as many refused hits as there are at least. */
  #takeRefused(key: string, hits: number): number {
    if (hits > 0) this.#refused?.take(key, 0, hits)
    return hits
  }

  #tierOf(limit: number): Tier {
    const logs = this.#logLimits
    let i = 0
    while (i < logs.length && limit > logs[i]!) i++
    const tier = this.#tiers[i] ?? this.#createTier(limit, logs[i])
    this.#tiers[i] = tier
    return tier
  }

  #createTier(limit: number, mostInLog: number | undefined): Tier {
    const { maxKeys } = this.#options
    return mostInLog === undefined
      ? new BucketTier(this.#windowMs, limit, maxKeys, this.#clock)
      : new LogTier(this.#windowMs, limit, mostInLog, maxKeys, this.#clock)
  }

  #refusals(): FixedCounts {
    this.#refused ??= new FixedCounts(this.#windowMs, this.#options, this.#clock)
    return this.#refused
  }

  /** Whole milliseconds until the window of a key without admitted hits ends; 0 if it has none. */
  #windowEndsInMs(key: string): number {
    return this.#openings.leftMs(key) || this.#refusedMs(key)
  }

  #refusedOf(key: string): number {
    return this.#refused?.read(key, 0)?.hits ?? 0
  }

  #refusedMs(key: string): number {
    return this.#refused?.read(key, 0)?.resetMs ?? 0
  }

  #parts(): (Tier | FixedCounts | Mark)[] {
    const parts = [this.#openings, ...this.#tiers, this.#refused, this.#emptied]
    return parts.filter((part) => part !== undefined)
  }
}
