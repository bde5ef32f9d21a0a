import { CompositeDecision } from './composite-decision.js'
import type { Decision, DecisionFields, RuleDecision } from './decision.js'
import { fieldsOf, indexOfLeast, jsonOf, ruleFieldsOf, ruleJsonOf } from './decision-fields.js'
import type { DecisionSource } from './decision-source.js'

/**
 * A decision of rules whose figures are all known. A copy by `{ ...decision }` has the rules. `requested` is what its
 * limiter needs to give the charge back; it is private.
 */
export class KnownDecision<P extends RuleDecision = RuleDecision, R = unknown>
  extends CompositeDecision<P>
  implements Decision
{
  readonly allowed: boolean
  readonly rules: readonly P[]
  declare readonly source?: DecisionSource
  readonly #requested: R
  #deciding: number

  /** @param refusing the index of the rule that refused, or -1 for an admission */
  constructor(requested: R, source: DecisionSource | undefined, rules: readonly P[], refusing: number) {
    super()
    this.allowed = refusing < 0
    this.rules = rules
    if (source !== undefined) this.source = source
    this.#requested = requested
    this.#deciding = refusing
  }

  /** @internal Whether an object is one, and neither a proxy of one nor made from its prototype. */
  static is(what: unknown): what is KnownDecision {
    return typeof what === 'object' && what !== null && #requested in what
  }

  /** @internal */
  get requested(): R {
    return this.#requested
  }

  /** @internal The index of the rule that refused, or -1 for an admission. */
  get refusing(): number {
    return this.allowed ? -1 : this.#deciding
  }

  /** @internal */
  get parts(): readonly P[] {
    return this.rules
  }

  toJSON(): DecisionFields {
    return this.#withRules(jsonOf(this), ruleJsonOf)
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return this.#withRules(fieldsOf(this), ruleFieldsOf)
  }

  protected get decidingPart(): P {
    if (this.#deciding < 0) this.#deciding = indexOfLeast(this.rules)
    return this.rules[this.#deciding]!
  }

  #withRules(fields: DecisionFields, of: (part: RuleDecision) => RuleDecision): DecisionFields {
    return this.rules.length === 1 ? fields : { ...fields, rules: this.rules.map(of) }
  }
}
