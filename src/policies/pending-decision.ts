import type { Decision, DecisionFields, RuleDecision } from '../core/decision.js'
import { jsonOf, ruleFieldsOf, secondsOf } from '../core/decision-fields.js'
import type { DecisionSource } from '../core/decision-source.js'
import { type Inspect, inspectAs } from '../core/inspect.js'

/** The refusal of a key whose policy is not known, with `onMiss: 'refuse'`. Nothing is charged. */
export class PendingDecision implements Decision {
  readonly allowed = false
  readonly limit = 0
  readonly remaining = 0
  readonly retryAfterMs: number
  readonly resetMs: number
  readonly rule: string
  readonly source: DecisionSource = 'config'
  readonly #isPending = true

  constructor(rule: string, retryAfterMs: number) {
    this.rule = rule
    this.retryAfterMs = Math.max(1, Math.ceil(retryAfterMs))
    this.resetMs = this.retryAfterMs
  }

  /** Whether it is one, and neither a proxy of one nor made from its prototype. */
  static is(what: unknown): what is PendingDecision {
    return typeof what === 'object' && what !== null && #isPending in what && what.#isPending
  }

  get retryAfterSeconds(): number {
    return secondsOf(this.retryAfterMs)
  }

  get rules(): readonly RuleDecision[] {
    return [ruleFieldsOf(this)]
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('Decision', this.toJSON(), options, inspect)
  }
}
