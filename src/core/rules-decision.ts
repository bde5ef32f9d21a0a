import { CompositeDecision } from './composite-decision.js'
import {
  type Decision,
  type DecisionFields,
  type EngineEra,
  InlineDecision,
  Outcome,
  type RuleDecision,
} from './decision.js'
import { fieldsOf, indexOfLeast, jsonOf, ruleFieldsOf, ruleJsonOf } from './decision-fields.js'

/** The index of the deciding rule before it is known. */
const UNKNOWN = -1

/** The decision of one rule in a decision of several, with its key and the place of its charge. */
export interface Part extends RuleDecision {
  readonly lo: number
  readonly hi: number
  readonly way: number
  readonly isGivenBack: boolean
  /** Whether the rule has the option `shadow`, would have refused the request, and charged nothing. */
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
 * What one rule has charged, from which its part of a decision is made when it is read. It is half as large as the
 * part. (To allocate memory is what a decision by two rules costs most beyond two by one.)
 */
export class RuleCharge {
  readonly era: EngineEra
  readonly limit: number
  readonly way: number
  readonly tick: number
  readonly adm: number
  /** That of the next rule. */
  readonly next: RuleCharge | undefined

  constructor(
    era: EngineEra,
    limit: number,
    way: number,
    tick: number,
    adm: number,
    next: RuleCharge | undefined,
  ) {
    this.era = era
    this.limit = limit
    this.way = way
    this.tick = tick
    this.adm = adm
    this.next = next
  }
}

/**
 * A decision of several rules. Inline, a part computes its figures as `InlineDecision` does. A part from a pool
 * has them from the reply. The parts of a refusal that are peeks have the same reading of the clock as the
 * others.
 */
export class RulesDecision<P extends Part = RulePart> extends CompositeDecision<P> implements Decision {
  readonly allowed: boolean
  readonly #engine: object
  /** The index of the rule that decided. For an admission it is computed when it is read. */
  #deciding: number
  /** The parts, or the charges of all rules, beginning with the first. */
  #parts: Parts<P> | RuleCharge
  readonly #lo: number
  readonly #hi: number
  readonly #cost: number
  readonly #at: number

  /**
   * @param refusing the index of the rule that refused, or -1 for an admission
   * @param lo with `hi`, `cost` and `at`, the reading in whole milliseconds: what all parts have in common, if they are
   * given as charges
   */
  constructor(
    engine: object,
    parts: Parts<P> | RuleCharge,
    refusing: number,
    lo = 0,
    hi = 0,
    cost = 0,
    at = 0,
  ) {
    super()
    this.allowed = refusing < 0
    this.#engine = engine
    this.#deciding = refusing < 0 ? UNKNOWN : refusing
    this.#parts = parts
    this.#lo = lo
    this.#hi = hi
    this.#cost = cost
    this.#at = at
  }

  get rules(): Parts<P> {
    const parts = this.#parts
    return parts instanceof RuleCharge ? this.#makeParts(parts) : parts
  }

  #makeParts(first: RuleCharge): Parts<P> {
    const parts: InlineDecision[] = []
    for (let charge: RuleCharge | undefined = first; charge !== undefined; charge = charge.next) {
      const { era, limit, way, tick, adm } = charge
      // biome-ignore format: one line
      const part = new InlineDecision(era, this.#lo, this.#hi, this.#cost, limit, this.#at, Outcome.CHARGED, way, tick, 0, adm)
      parts.push(part)
    }
    this.#parts = parts as unknown as Parts<P>
    return this.#parts
  }

  /** @internal The engine that decided. */
  get engine(): object {
    return this.#engine
  }

  /** @internal The index of the rule that refused, or -1 for an admission. */
  get refusing(): number {
    return this.allowed ? UNKNOWN : this.#deciding
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
    if (this.#deciding === UNKNOWN) this.#deciding = indexOfLeast(this.rules)
    return this.rules[this.#deciding]!
  }
}

/** A bit for each rule, by its index, that is shadowed in a decision of an engine. */
export function shadowedRules(decision: Decision): number {
  const parts = decision.rules as readonly Part[]
  return parts.reduce((bits, { isShadowed }, i) => (isShadowed ? bits | (1 << i) : bits), 0)
}
