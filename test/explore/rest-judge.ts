import type { Ledger } from './ledger.js'
import { GRANULE_MS, type Scenario, WORD_ALGORITHMS } from './scenario.js'

/**
 * Whether a decision that runs alone is admitted at the reading `atMs`. A cell of another record is converted
 * before, at `fromMs`: its units may count for one window from then on.
 */
export type IsAdmitted = (key: number, cost: number, fromMs: number, atMs: number) => boolean
/** The units that a key has used at this reading, seen by a thread that runs alone. */
export type UsageOf = (key: number, atMs: number) => number

/** Judges, when no thread is inside an operation, that each key has all the room that it should have. */
export class RestJudge {
  readonly #scenario: Scenario
  readonly #ledger: Ledger
  readonly #limit: number
  readonly #isAdmitted: IsAdmitted

  /** The ledger is that of one rule, whose present limit is `limit`. */
  constructor(scenario: Scenario, ledger: Ledger, limit: number, isAdmitted: IsAdmitted) {
    this.#scenario = scenario
    this.#ledger = ledger
    this.#limit = limit
    this.#isAdmitted = isAdmitted
  }

  /** At this moment there is room for what is left of the limit. */
  judgeRoom(nowMs: number): void {
    if (!this.#scenario.forbidden.includes('refused at rest')) return
    const ledger = this.#ledger
    for (const key of ledger.keys) {
      const used = ledger.used(key, nowMs) ?? this.#limit
      if (used >= this.#limit || ledger.isBlocked(key, nowMs)) continue
      if (!this.#isAdmitted(key, this.#limit - used, nowMs, nowMs))
        ledger.fail('refused at rest', `key ${key}: ${used} of ${this.#limit} used, and no room for the rest`)
    }
  }

  /** No key uses more than was charged for it. */
  judgeUsage(nowMs: number, usageOf: UsageOf): void {
    const ledger = this.#ledger
    if (!this.#scenario.forbidden.includes('counted twice')) return
    const carriesLimit = WORD_ALGORITHMS.some((algorithm) => algorithm === this.#scenario.algorithm)
    for (const key of ledger.keys) {
      const most = Math.max(ledger.ever(key), carriesLimit ? this.#limit : 0)
      const used = usageOf(key, nowMs)
      if (used > most) ledger.fail('counted twice', `key ${key}: ${used} used, ${ledger.ever(key)} charged`)
    }
  }

  /** After a window and a granule, and after each of the scenario's gaps, there is room for the whole limit. */
  judgeIdle(nowMs: number): void {
    const { forbidden, gaps = [], restKeys = [1], ahead = [] } = this.#scenario
    if (!forbidden.includes('locked out')) return
    const ledger = this.#ledger
    const { timeline } = ledger
    const windowMs = (timeline.bucketsOf(timeline.current) + 1) * timeline.granuleMsOf(timeline.current)
    const idleMs = [windowMs + Math.max(0, ...ahead) * GRANULE_MS, ...gaps.map((gap) => gap * GRANULE_MS)]
    for (const ms of idleMs) {
      for (const key of restKeys) {
        if (ledger.isBlocked(key, nowMs + ms)) continue
        if (!this.#isAdmitted(key, this.#limit, nowMs, nowMs + ms))
          ledger.fail('locked out', `key ${key}, ${ms} ms later`)
      }
    }
  }
}
