import { CompositeDecision } from './composite-decision.js'
import type { Decision, DecisionFields, RuleDecision } from './decision.js'
import { fieldsOf, indexOfLeast, jsonOf, ruleFieldsOf, ruleJsonOf } from './decision-fields.js'
import type { Outcome } from './inline-decision.js'
import { isUncounted } from './uncounted-limit.js'

/** The index of the deciding rule of an admission before it is known. */
export const UNDECIDED = -1

/** The decision of one rule in a decision of several, with its key and the place of its charge. */
export interface Part extends RuleDecision {
  readonly lo: number
  readonly hi: number
  readonly way: number
  readonly isGivenBack: boolean
  /** Whether the rule is not enforced, would have refused the request, and charged nothing. */
  readonly isShadowed: boolean
}

/** A decision of one rule on the calling thread, by `InlineEngine` or `UnitEngine`. */
export interface RulePart extends Decision, Part {
  readonly cost: number
  readonly outcome: Outcome
}

/** The parts of a decision: one for each rule, in order. */
export type Parts<P extends Part = RulePart> = readonly [P, ...P[]]

/**
 * A decision of several rules. The class has only accessors, so that the constructor of a decision costs no more.
 */
export abstract class RulesDecision<P extends Part = RulePart>
  extends CompositeDecision<P>
  implements Decision
{
  abstract get rules(): Parts<P>
  /** @internal The engine that decided. */
  abstract get engine(): object
  /** The index of the rule that decided. For an admission it is computed when it is read. */
  protected abstract get deciding(): number
  protected abstract set deciding(rule: number)

  /** @internal The index of the rule that refused, or -1 for an admission. */
  get refusing(): number {
    return this.allowed ? UNDECIDED : this.deciding
  }

  get parts(): Parts<P> {
    return this.rules
  }

  /** @internal */
  get lo(): number {
    return this.rules[0].lo
  }

  /** @internal */
  get hi(): number {
    return this.rules[0].hi
  }

  /** @internal The key's way by the first rule, or -1. */
  get way(): number {
    return this.rules[0].way
  }

  /** @internal */
  get isGivenBack(): boolean {
    return this.rules.some((part) => part.isGivenBack)
  }

  toJSON(): DecisionFields {
    return { ...jsonOf(this), rules: this.rules.map(ruleJsonOf) }
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return { ...fieldsOf(this), rules: this.rules.map(ruleFieldsOf) as RuleDecision[] }
  }

  protected get decidingPart(): P {
    if (this.deciding === UNDECIDED) this.deciding = indexOfLeast(this.rules)
    return this.rules[this.deciding]!
  }
}

/** A bit for each rule, by its index, that is shadowed in a decision of an engine, or has a limit that needs no count. */
export function shadowedRules(decision: Decision): number {
  const parts = decision.rules as readonly Part[]
  return parts.reduce(
    (bits, { isShadowed, limit }, i) => (isShadowed || isUncounted(limit) ? bits | (1 << i) : bits),
    0,
  )
}
