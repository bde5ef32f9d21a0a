import type { Decision, DecisionFields, ShadowDecision } from '../../core/decision.js'
import { fieldsOf, jsonOf, secondsOf } from '../../core/decision-fields.js'
import { type InlineDecision, Outcome } from '../../core/inline-decision.js'
import { type Parts, RulesDecision } from '../../core/rules-decision.js'
import { UnitDecision } from '../../core/unit-decision.js'
import { verdictOf } from '../../core/verdict.js'
import {
  CHARGED_TICK,
  COST,
  HI,
  LIMIT,
  LO,
  NUMBER,
  OUTCOME,
  QUANTITY,
  REFUNDS,
  REFUSING,
  REMAINING,
  RESET_MS,
  RETRY_AFTER_MS,
  requestOf,
  unitsOfWord,
  WAY,
  wordOfUnits,
} from '../../memory/request-ring.js'
import { type RingMemory, slotOfRule } from './ring-transport.js'

/** The rule of a decision. */
export interface DecidingRule {
  readonly ruleName: string
  /** Whether the rule is not enforced. */
  readonly isShadow?: boolean
  /** The option `unit` of one of several rules. */
  readonly unit?: number | undefined
}

/** The engine that sent the request. `ruleName` and `isShadow` are those of its first rule. */
export interface DecidingEngine extends DecidingRule {
  /** All rules, if there are several. */
  readonly rules?: readonly DecidingRule[] | undefined
  /** Whether any of several rules has a unit. */
  readonly countsInUnits?: boolean
}

/** The part of one rule in a decision of several. */
export type PoolPart = PoolDecision | UnitDecision<PoolDecision>

/** A decision of several rules. A copy by `{ ...decision }` has its parts. */
export class PoolRulesDecision extends RulesDecision<PoolPart> {
  readonly allowed: boolean
  readonly rules: Parts<PoolPart>
  readonly #engine: object
  #deciding: number

  /** @param refusing the index of the rule that refused, or UNDECIDED for an admission */
  constructor(engine: object, parts: Parts<PoolPart>, refusing: number) {
    super()
    this.allowed = refusing < 0
    this.rules = parts
    this.#engine = engine
    this.#deciding = refusing
  }

  /** @internal Whether an object is one, and neither a proxy of one nor made from its prototype. */
  static is(what: unknown): what is PoolRulesDecision {
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
}

/** A decision of a pool, by one rule or by several. */
export type AnyPoolDecision = PoolDecision | PoolRulesDecision

export const isPoolDecision = (what: unknown): what is AnyPoolDecision =>
  PoolDecision.is(what) || PoolRulesDecision.is(what)

/** Whether any rule has a charge of the decision. */
export function isCharged({ rules }: AnyPoolDecision): boolean {
  return rules.some(({ outcome }) => outcome === Outcome.CHARGED)
}

/** The cost of a decision: the largest of its parts, because a part without a unit has only 32 bits. */
export function costOf(parts: readonly PoolPart[]): number {
  return Math.max(...parts.map(({ cost }) => cost))
}

/** Reads the decision in the slot of a ring. */
export function decisionIn(memory: RingMemory, slot: number, engine: DecidingEngine): AnyPoolDecision {
  if (engine.rules === undefined) return new PoolDecision(memory, slot, slot, engine)
  const quantity = memory.doubles[(slot >>> 1) + QUANTITY]!
  const parts = engine.rules.map((rule, i) => {
    const part = new PoolDecision(memory, slot, slotOfRule(slot, i), rule)
    return rule.unit === undefined ? part : new UnitDecision(part, quantity, rule.unit)
  })
  const refusing = memory.words[slot + REFUSING]!
  return new PoolRulesDecision(engine, parts as unknown as Parts<PoolPart>, refusing)
}

/**
 * Writes the decision of one rule into its slot. Reading the estimates computes them here, before anything
 * changes the key.
 */
export function writeDecision({ words, doubles }: RingMemory, slot: number, decision: InlineDecision): void {
  const double = slot >>> 1
  words[slot + LIMIT] = wordOfUnits(decision.limit)
  words[slot + OUTCOME] = decision.outcome
  words[slot + WAY] = decision.way
  words[slot + CHARGED_TICK] = decision.tick
  words[slot + REFUNDS] = decision.receipt
  words[slot + REMAINING] = wordOfUnits(decision.remaining)
  doubles[double + NUMBER] = decision.at
  doubles[double + RETRY_AFTER_MS] = verdictOf(decision).retryAfterMs
  doubles[double + RESET_MS] = decision.resetMs
}

/**
 * A decision by a worker, or the part of one rule in it. All of its figures come with the reply. Its
 * internals are private, so that a copy has only the public fields.
 */
export class PoolDecision implements Decision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly retryAfterSeconds: number
  readonly resetMs: number
  readonly rule: string
  readonly #engine: DecidingRule
  readonly #lo: number
  readonly #hi: number
  readonly #cost: number
  readonly #way: number
  readonly #tick: number
  readonly #receipt: number
  readonly #at: number
  /** How long the request is refused, or would have been if its rule were enforced. */
  readonly #refusedMs: number
  #outcome: Outcome

  /** Reads the request that belongs to `slot`, and the reply in `own`, the slot of the rule. */
  constructor({ words, doubles }: RingMemory, slot: number, own: number, engine: DecidingRule) {
    const request = requestOf(slot)
    const double = own >>> 1
    const outcome = words[own + OUTCOME] as Outcome
    this.allowed = outcome >= Outcome.UNCOUNTED
    this.limit = unitsOfWord(words[own + LIMIT]!)
    this.remaining = unitsOfWord(words[own + REMAINING]!)
    this.#refusedMs = smallest(doubles[double + RETRY_AFTER_MS]!)
    this.retryAfterMs = this.allowed ? 0 : this.#refusedMs
    this.retryAfterSeconds = this.allowed ? 0 : secondsOf(this.retryAfterMs)
    this.resetMs = smallest(doubles[double + RESET_MS]!)
    this.rule = engine.ruleName
    this.#engine = engine
    this.#lo = words[request + LO]!
    this.#hi = words[request + HI]!
    this.#cost = words[request + COST]!
    this.#way = words[own + WAY]!
    this.#tick = words[own + CHARGED_TICK]!
    this.#receipt = words[own + REFUNDS]!
    this.#at = doubles[double + NUMBER]!
    this.#outcome = outcome
  }

  /** @internal Whether an object is one, and neither a proxy of one nor made from its prototype. */
  static is(what: unknown): what is PoolDecision {
    return typeof what === 'object' && what !== null && #engine in what
  }

  /** @internal The engine that sent the request, or for a part of several rules, its rule. */
  get engine(): DecidingRule {
    return this.#engine
  }

  /** @internal */
  get lo(): number {
    return this.#lo
  }

  /** @internal */
  get hi(): number {
    return this.#hi
  }

  /** @internal */
  get cost(): number {
    return this.#cost
  }

  /** @internal */
  get way(): number {
    return this.#way
  }

  /** @internal */
  get tick(): number {
    return this.#tick
  }

  /** @internal */
  get receipt(): number {
    return this.#receipt
  }

  /** @internal The worker's reading of the clock, if it is needed to give the charge back. */
  get at(): number {
    return this.#at
  }

  /** @internal */
  get outcome(): Outcome {
    return this.#outcome
  }

  set outcome(outcome: Outcome) {
    this.#outcome = outcome
  }

  /** @internal */
  get isGivenBack(): boolean {
    return this.#outcome === Outcome.GIVEN_BACK
  }

  /** @internal Whether its rule would have refused it, and charged nothing. */
  get isShadowed(): boolean {
    return this.#outcome === Outcome.SHADOWED
  }

  get rules(): readonly [PoolDecision] {
    return [this]
  }

  get shadow(): ShadowDecision | undefined {
    if (this.#engine.isShadow !== true) return undefined
    return { allowed: !this.isShadowed, retryAfterMs: this.#refusedMs }
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  /** @see InlineDecision */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }
}

/** The same number. A whole one becomes a small integer, which V8 stores in the object itself. */
const smallest = (ms: number): number => ((ms | 0) === ms ? ms | 0 : ms)
