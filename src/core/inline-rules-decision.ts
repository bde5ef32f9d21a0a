import { type EngineEra, InlineDecision, Outcome } from './inline-decision.js'
import { type Parts, RulesDecision } from './rules-decision.js'

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
export class InlineRulesDecision extends RulesDecision {
  readonly allowed: boolean
  readonly #engine: object
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

  /** @internal Whether an object is one, and neither a proxy of one nor made from its prototype. */
  static is(what: unknown): what is InlineRulesDecision {
    return typeof what === 'object' && what !== null && #engine in what
  }

  get engine(): object {
    return this.#engine
  }

  protected get deciding(): number {
    return this.#deciding
  }

  protected set deciding(rule: number) {
    this.#deciding = rule
  }

  get rules(): Parts {
    const parts = this.#parts
    return parts instanceof RuleCharge ? this.#makeParts(parts) : parts
  }

  #makeParts(first: RuleCharge): Parts {
    const parts: InlineDecision[] = []
    for (let charge: RuleCharge | undefined = first; charge !== undefined; charge = charge.next) {
      const { era, limit, at, way, tick, adm } = charge
      // biome-ignore format: one line
      const part = new InlineDecision(era, this.#lo, this.#hi, this.#cost, limit, at, Outcome.CHARGED, way, tick, 0, adm)
      parts.push(part)
    }
    this.#parts = parts as unknown as Parts
    return this.#parts
  }
}
