import type { Decision, DecisionFields, RuleDecision, ShadowDecision } from './decision.js'
import { fieldsOf, jsonOf } from './decision-fields.js'
import type { InlineDecision, Outcome } from './inline-decision.js'
import { unitsBetween } from './units.js'

/** Returns the decision in whole units. A decision of a rule without a unit is one already. */
export const countedOf = (decision: RuleDecision): InlineDecision =>
  decision instanceof UnitDecision ? decision.counted : (decision as InlineDecision)

/** A decision of a rule with the option `unit`: the quantities of a decision in whole units. */
export class UnitDecision implements Decision {
  readonly allowed: boolean
  readonly limit: number
  readonly rule: string
  readonly #counted: InlineDecision
  readonly #cost: number
  readonly #unit: number

  /** @param cost the requested quantity */
  constructor(counted: InlineDecision, cost: number, unit: number) {
    this.allowed = counted.allowed
    this.limit = counted.limit * unit
    this.rule = counted.rule
    this.#counted = counted
    this.#cost = cost
    this.#unit = unit
  }

  /** @internal Not one that only inherits from a decision, or is a proxy of one. */
  static is(what: unknown): what is UnitDecision {
    return typeof what === 'object' && what !== null && #counted in what
  }

  /** @internal */
  get isBlocked(): boolean {
    return this.#counted.isBlocked
  }

  /** @internal The decision in whole units. */
  get counted(): InlineDecision {
    return this.#counted
  }

  /** @internal */
  get cost(): number {
    return this.#cost
  }

  /** @internal The whole units to give back for a part of the cost. */
  unitsOf(part: number): number {
    return unitsBetween(this.#cost, this.#cost - part, this.#unit)
  }

  /** @internal */
  get lo(): number {
    return this.#counted.lo
  }

  /** @internal */
  get hi(): number {
    return this.#counted.hi
  }

  /** @internal */
  get way(): number {
    return this.#counted.way
  }

  /** @internal */
  get outcome(): Outcome {
    return this.#counted.outcome
  }

  get remaining(): number {
    return this.#counted.remaining * this.#unit
  }

  get retryAfterMs(): number {
    return this.#counted.retryAfterMs
  }

  get retryAfterSeconds(): number {
    return this.#counted.retryAfterSeconds
  }

  get resetMs(): number {
    return this.#counted.resetMs
  }

  get shadow(): ShadowDecision | undefined {
    return this.#counted.shadow
  }

  get rules(): readonly RuleDecision[] {
    return [this]
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }
}
