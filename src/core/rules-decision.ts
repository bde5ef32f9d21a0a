import { CompositeDecision } from './composite-decision.js'
import type { Decision, DecisionFields, RuleDecision } from './decision.js'
import { fieldsOf, indexOfLeast, jsonOf, ruleFieldsOf, ruleJsonOf } from './decision-fields.js'
import { type EngineEra, InlineDecision, Outcome } from './inline-decision.js'
import { isUncounted } from './uncounted-limit.js'

/** The index of the deciding rule of an admission before it is known. */
export const UNDECIDED = -1

/** A decision of one rule on the calling thread, by `InlineEngine` or `UnitEngine`. */
export interface RulePart extends Decision {
  readonly lo: number
  readonly hi: number
  readonly way: number
  readonly cost: number
  readonly outcome: Outcome
}

/** The parts of a decision: one for each rule, in order. */
export type Parts = readonly [RulePart, ...RulePart[]]

/**
 * What one rule has charged, from which its part of a decision is made when it is read. It is smaller than the part:
 * the memory of the parts was a third of what a second rule added to the time of a decision.
 */
export class RuleCharge {
  readonly era: EngineEra
  readonly limit: number
  /** The reading, or the whole millisecond before it if the figures are the same. */
  readonly at: number
  readonly way: number
  readonly tick: number
  readonly adm: number
  /** That of the next rule. */
  readonly next: RuleCharge | undefined

  constructor(
    era: EngineEra,
    limit: number,
    at: number,
    way: number,
    tick: number,
    adm: number,
    next: RuleCharge | undefined,
  ) {
    this.era = era
    this.limit = limit
    this.at = at
    this.way = way
    this.tick = tick
    this.adm = adm
    this.next = next
  }
}

/**
 * A decision of several rules on the calling thread. A part computes its figures as `InlineDecision` does. The parts of
 * a refusal that are peeks have the same reading of the clock as the others.
 */
export class RulesDecision extends CompositeDecision<RulePart> implements Decision {
  readonly allowed: boolean
  readonly #engine: object
  /** The index of the rule that decided. For an admission it is computed when it is read. */
  #deciding: number
  /** The parts, or the charges of all rules, beginning with the first. */
  #parts: Parts | RuleCharge
  readonly #lo: number
  readonly #hi: number
  readonly #cost: number

  /**
   * @param refusing the index of the rule that refused, or UNDECIDED for an admission
   * @param lo with `hi` and `cost`: what all parts have in common, if they are given as charges
   */
  constructor(engine: object, parts: Parts | RuleCharge, refusing: number, lo = 0, hi = 0, cost = 0) {
    super()
    this.allowed = refusing < 0
    this.#engine = engine
    this.#deciding = refusing
    this.#parts = parts
    this.#lo = lo
    this.#hi = hi
    this.#cost = cost
  }

  /** @internal Whether an object is one of this engine, and neither a proxy of one nor made from its prototype. */
  static isOf(engine: object, what: unknown): what is RulesDecision {
    return typeof what === 'object' && what !== null && #engine in what && what.#engine === engine
  }

  /** @internal The index of the rule that refused, or -1 for an admission. */
  get refusing(): number {
    return this.allowed ? UNDECIDED : this.#deciding
  }

  get rules(): Parts {
    const parts = this.#parts
    return parts instanceof RuleCharge ? this.#makeParts(parts) : parts
  }

  get parts(): Parts {
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

  toJSON(): DecisionFields {
    return { ...jsonOf(this), rules: this.rules.map(ruleJsonOf) }
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return { ...fieldsOf(this), rules: this.rules.map(ruleFieldsOf) as RuleDecision[] }
  }

  protected get decidingPart(): RulePart {
    if (this.#deciding === UNDECIDED) this.#deciding = indexOfLeast(this.rules)
    return this.rules[this.#deciding]!
  }

  #makeParts(first: RuleCharge): Parts {
    const parts: InlineDecision[] = []
    for (let charge: RuleCharge | undefined = first; charge !== undefined; charge = charge.next) {
      const { era, limit, at, way, tick, adm } = charge
      // biome-ignore format: one line
      const part = new InlineDecision(era, this.#lo, this.#hi, this.#cost, limit, at, Outcome.CHARGED, way, tick, 0, adm)
      parts.push(part)
    }
    this.#parts = parts as [InlineDecision, ...InlineDecision[]]
    return this.#parts
  }
}

/** The parts of a decision of an engine or a pool. */
const partsOf = ({ rules }: Decision) => rules as readonly (RuleDecision & { readonly outcome: Outcome })[]

/** Whether the part of any rule in a decision of an engine or a pool has this outcome. */
export const hasOutcome = (decision: Decision, outcome: Outcome): boolean =>
  partsOf(decision).some((part) => part.outcome === outcome)

/** A bit for each rule, by its index, that is shadowed in a decision of an engine, or has a limit that needs no count. */
export function shadowedRules(decision: Decision): number {
  return partsOf(decision).reduce(
    (bits, { outcome, limit }, i) =>
      outcome === Outcome.SHADOWED || isUncounted(limit) ? bits | (1 << i) : bits,
    0,
  )
}
