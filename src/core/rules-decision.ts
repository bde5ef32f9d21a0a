import type { Decision, DecisionFields, Outcome, RuleDecision, ShadowDecision } from './decision.js'
import { fieldsOf, indexOfLeast, jsonOf, ruleFieldsOf, ruleJsonOf, secondsOf } from './decision-fields.js'

/** The index of the deciding rule before it is known. */
const UNKNOWN = -1

/** The part of one rule, with its key and where it is charged. */
export interface Part extends RuleDecision {
  readonly lo: number
  readonly hi: number
  readonly way: number
  readonly isGivenBack: boolean
}

/** The decision of one rule on the calling thread: of `InlineEngine`, or of `UnitEngine`. */
export interface RulePart extends Decision, Part {
  readonly cost: number
  readonly outcome: Outcome
  readonly isShadowed: boolean
}

/** The parts of a decision, one for each rule. */
export type Parts<P extends Part = RulePart> = readonly [P, ...P[]]

/**
 * A decision of several rules. Each part is a decision of one rule. Inline, a part computes its figures when
 * they are read; the parts of a pool have theirs from the reply.
 *
 * If a rule refused, the others charged nothing, or gave their charges back. Their parts are peeks by the
 * same reading, after that. A rule whose part is allowed goes on fitting while nothing else is charged, so
 * the request fits all rules when it fits the last of those that refuse.
 */
export class RulesDecision<P extends Part = RulePart> implements Decision {
  readonly allowed: boolean
  readonly rules: Parts<P>
  readonly #engine: object
  /** The index of the rule that refused. Of an admission: of the one with the smallest part left. */
  #deciding: number

  /** @param refusing the index of the rule that refused, or -1 for an admission */
  constructor(engine: object, parts: Parts<P>, refusing: number) {
    this.allowed = refusing < 0
    this.rules = parts
    this.#engine = engine
    this.#deciding = refusing < 0 ? UNKNOWN : refusing
  }

  /** @internal The engine that decided. */
  get engine(): object {
    return this.#engine
  }

  /** @internal The index of the rule that refused, or -1 for an admission. */
  get refusing(): number {
    return this.allowed ? UNKNOWN : this.#deciding
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

  /** @internal The rules without the option `shadow` have charged it. */
  get isShadowed(): boolean {
    return false
  }

  /** As if the rules with the option `shadow` were enforced, too. */
  get shadow(): ShadowDecision | undefined {
    if (this.rules.every(({ shadow }) => shadow === undefined)) return undefined
    const allowed = this.allowed && this.rules.every(({ shadow }) => shadow?.allowed !== false)
    const ms = this.rules.map((part) => Math.max(part.retryAfterMs, part.shadow?.retryAfterMs ?? 0))
    return { allowed, retryAfterMs: Math.max(...ms) }
  }

  get rule(): string {
    return this.#decidingPart().rule
  }

  get limit(): number {
    return this.#decidingPart().limit
  }

  get remaining(): number {
    return this.#decidingPart().remaining
  }

  get retryAfterMs(): number {
    if (this.allowed) return 0
    let longest = 0
    for (const part of this.rules) longest = Math.max(longest, part.retryAfterMs)
    return longest
  }

  get retryAfterSeconds(): number {
    return secondsOf(this.retryAfterMs)
  }

  get resetMs(): number {
    return this.#decidingPart().resetMs
  }

  toJSON(): DecisionFields {
    return { ...jsonOf(this), rules: this.rules.map(ruleJsonOf) }
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return { ...fieldsOf(this), rules: this.rules.map(ruleFieldsOf) as RuleDecision[] }
  }

  #decidingPart(): P {
    if (this.#deciding === UNKNOWN) this.#deciding = indexOfLeast(this.rules)
    return this.rules[this.#deciding]!
  }
}
