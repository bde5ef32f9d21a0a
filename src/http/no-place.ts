import type { Decision, DecisionFields, RuleDecision } from '../core/decision.js'
import { jsonOf, ruleJsonOf, secondsOf } from '../core/decision-fields.js'

/** The refusal of a request that its limiter admitted, for which there was no place to wait. */
export class NoPlaceDecision implements Decision {
  readonly allowed = false
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetMs: number
  readonly rule: string
  readonly shadow: Decision['shadow']
  readonly source: Decision['source']
  readonly rules: readonly RuleDecision[]

  /** @param waitMs how long the request would have waited */
  constructor(admitted: Decision, waitMs: number) {
    this.limit = admitted.limit
    this.remaining = admitted.remaining
    this.retryAfterMs = Math.ceil(waitMs)
    this.resetMs = admitted.resetMs
    this.rule = admitted.rule
    this.shadow = admitted.shadow
    this.source = admitted.source
    this.rules = admitted.rules.map((part) =>
      part.rule === admitted.rule
        ? { ...ruleJsonOf(part), allowed: false, retryAfterMs: this.retryAfterMs }
        : part,
    )
  }

  get retryAfterSeconds(): number {
    return secondsOf(this.retryAfterMs)
  }

  toJSON(): DecisionFields {
    const fields = jsonOf(this)
    return this.rules.length === 1 ? fields : { ...fields, rules: this.rules.map(ruleJsonOf) }
  }
}
