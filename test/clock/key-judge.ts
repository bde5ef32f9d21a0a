import type { Decision } from 'millrace'
import * as assert from 'uvu/assert'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { ExactLog } from '../judge/exact-log.js'

export interface ClockRule {
  limit: number
  windowMs: number
  parts: number
}

const HOUR_MS = 3_600_000

/**
 * How far a clock may be behind the newest reading that decided on a key before its counts are forgotten: an
 * hour, or two granules if those are more, or 2^20 granules if those are less. Ticks are whole and the hour
 * is rounded up to ticks, so either outcome is allowed within two granules of that.
 */
export function standsForMs({ windowMs, parts }: ClockRule): number {
  const granuleMs = windowMs / parts
  return Math.min(Math.max(HOUR_MS, 2 * granuleMs), 2 ** 20 * granuleMs)
}

/**
 * Judges the promises for one key under a clock that may step freely. Times are milliseconds of that clock.
 */
export class KeyJudge {
  readonly #rule: ClockRule
  readonly #log = new ExactLog()
  #newestMs = Number.NEGATIVE_INFINITY
  admitted = 0
  refused = 0
  /** The number of decisions by a reading of an earlier granule than the newest. */
  stood = 0
  /** How often counts were forgotten, because the clock was too far back. */
  forgotten = 0

  constructor(rule: ClockRule) {
    this.#rule = rule
  }

  /** The newest reading that decided on the key. */
  get newestMs(): number {
    return this.#newestMs
  }

  /** Whether a reading is so far back that the clock may stand still or the counts may be forgotten. */
  isUnclear(readingMs: number): boolean {
    const backMs = this.#newestMs - readingMs
    const stands = standsForMs(this.#rule)
    return backMs > stands && backMs <= stands + (2 * this.#rule.windowMs) / this.#rule.parts
  }

  /** Judges a decision by this reading. The caller passes decisions in their order. */
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
