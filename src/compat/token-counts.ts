import type { FigureCounts, RuleCounts } from '../core/decision-counts.js'
import { checkNearLimit, NEAR_LIMIT } from '../core/near-limit.js'
import { RULE } from './stats.js'

/** What came of calls for tokens. It is smaller than `DecisionCounts`: some programs have an object for each client. */
export class TokenCounts {
  readonly #nearLimit: number
  #admitted = 0
  #refused = 0
  #near = 0

  /** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
  constructor(nearLimit: unknown) {
    this.#nearLimit = checkNearLimit(nearLimit) ?? NEAR_LIMIT
  }

  /** @param used how many of `most` are used now */
  count(allowed: boolean, used: number, most: number): void {
    if (!allowed) {
      this.#refused++
      return
    }
    this.#admitted++
    if (used / most >= this.#nearLimit) this.#near++
  }

  present(): FigureCounts & RuleCounts {
    const [admitted, refused, nearLimit] = [this.#admitted, this.#refused, this.#near]
    const own = { admitted, refused, shadowRefused: 0, blocked: 0, nearLimit }
    return { ...own, rules: { [RULE]: own } }
  }
}
