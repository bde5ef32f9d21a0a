import type { Decision } from 'millrace'
import * as assert from 'uvu/assert'
import type { InlineDecision } from '#millrace/core/decision.js'
import { ExactLog } from '../judge/exact-log.js'

export interface ClockRule {
  limit: number
  windowMs: number
  parts: number
}

const HOUR_MS = 3_600_000

/**
 * How far a clock may lie behind the newest reading that a key was decided by, and its counts still stand: an hour, two
 * granules where those are more, 2^20 granules where those are less. Ticks are whole and the hour is rounded up to them, so
 * for two granules more either may be.
 */
export function standsForMs({ windowMs, parts }: ClockRule): number {
  const granuleMs = windowMs / parts
  return Math.min(Math.max(HOUR_MS, 2 * granuleMs), 2 ** 20 * granuleMs)
}

/** What is promised of one key by clocks that go as they like, in milliseconds of those clocks. */
export class KeyJudge {
  readonly #rule: ClockRule
  readonly #log = new ExactLog()
  #newestMs = Number.NEGATIVE_INFINITY
  admitted = 0
  refused = 0
  /** How often it was decided by a reading of an earlier granule than one before. */
  stood = 0
  /** How often its counts were forgotten, the clock being too far back. */
  forgotten = 0

  constructor(rule: ClockRule) {
    this.#rule = rule
  }

  /** The newest reading that the key was decided by. */
  get newestMs(): number {
    return this.#newestMs
  }

  /** Whether a reading is neither surely near enough to stand still nor surely so far back that counts are forgotten. */
  isUnclear(readingMs: number): boolean {
    const backMs = this.#newestMs - readingMs
    const stands = standsForMs(this.#rule)
    return backMs > stands && backMs <= stands + (2 * this.#rule.windowMs) / this.#rule.parts
  }

  /** Judges a decision made by this reading. Each is told of in the order in which they were made. */
  judge(readingMs: number, cost: number, decision: Pick<Decision, 'allowed'>): void {
    const { allowed } = decision
    this.judgeEffect(readingMs, cost, allowed, allowed ? (decision as InlineDecision).effectMs(readingMs) : 0)
  }

  judgeEffect(readingMs: number, cost: number, allowed: boolean, effectMs: number): void {
    const { limit, windowMs, parts } = this.#rule
    const granuleMs = windowMs / parts
    if (this.#newestMs - readingMs > standsForMs(this.#rule) + 2 * granuleMs) {
      this.#log.clear()
      this.#newestMs = readingMs
      this.forgotten++
    }
    const stands = this.#tickOf(this.#newestMs) > this.#tickOf(readingMs)
    const standsAt = this.#tickOf(this.#newestMs) * granuleMs
    if (stands) this.stood++
    if (allowed) {
      assert.is(
        effectMs,
        stands ? standsAt : readingMs,
        'takes effect at its reading, or where its key stands',
      )
      this.#log.add(effectMs, cost)
      const most = this.#log.mostAround(effectMs, windowMs)
      assert.ok(most <= limit, `${most} of ${limit} in one window around ${effectMs}`)
      this.admitted++
    } else {
      const end = Math.max(readingMs, this.#log.newest, stands ? standsAt : readingMs)
      const used = this.#log.used(end, windowMs + granuleMs)
      assert.ok(used + cost > limit, `refused at ${readingMs} with ${used} of ${limit} used: locked out`)
      this.refused++
    }
    this.#newestMs = Math.max(this.#newestMs, readingMs)
  }

  #tickOf(ms: number): number {
    return Math.floor((ms * this.#rule.parts) / this.#rule.windowMs)
  }
}
