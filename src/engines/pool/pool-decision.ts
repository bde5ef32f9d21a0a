import type { Decision, DecisionFields, ShadowDecision } from '../../core/decision.js'
import { type DecisionCounts, isBlocked } from '../../core/decision-counts.js'
import { fieldsOf, jsonOf, secondsOf } from '../../core/decision-fields.js'
import { type InlineDecision, Outcome } from '../../core/inline-decision.js'
import { KnownDecision } from '../../core/known-decision.js'
import { unitsBetween } from '../../core/units.js'
import { verdictOf } from '../../core/verdict.js'
import {
  BLOCKED,
  CHARGED_TICK,
  COST,
  HI,
  LIMIT,
  LO,
  NUMBER,
  OUTCOME,
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
  /** The option `unit`: the figures in the ring are whole units. */
  readonly unit?: number | undefined
}

/** The engine that sent the request. If there are several rules, `ruleName` and `isShadow` are those of the first. */
export interface DecidingEngine extends DecidingRule {
  /** All rules, if there are several. */
  readonly rules?: readonly DecidingRule[] | undefined
  /** Whether any of several rules has a unit. */
  readonly countsInUnits?: boolean
  /** What it has decided. */
  readonly own?: DecisionCounts
}

/** A decision of several rules. */
export type PoolRulesDecision = KnownDecision<PoolDecision, object>

/** A decision of a pool, by one rule or by several. */
export type AnyPoolDecision = PoolDecision | PoolRulesDecision

/** Whether this engine made the decision. False for the part of one of several rules. */
export function isOf(engine: DecidingEngine, what: unknown): what is AnyPoolDecision {
  return PoolDecision.isOf(engine, what) || (KnownDecision.is(what) && what.requested === engine)
}

/** Reads the decision in the slot of a ring. Of a rule with a unit, it is in whole units. */
export function decisionIn(memory: RingMemory, slot: number, engine: DecidingEngine): AnyPoolDecision {
  const { rules } = engine
  if (rules === undefined) return new PoolDecision(memory, slot, slot, engine)
  const parts = rules.map((rule, i) => new PoolDecision(memory, slot, slotOfRule(slot, i), rule))
  return new KnownDecision(engine, undefined, parts, memory.words[slot + REFUSING]!)
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
  words[slot + BLOCKED] = Number(isBlocked(decision))
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
  limit: number
  remaining: number
  readonly retryAfterMs: number
  readonly retryAfterSeconds: number
  readonly resetMs: number
  readonly rule: string
  readonly #rule: DecidingRule
  readonly #lo: number
  readonly #hi: number
  #cost: number
  readonly #way: number
  readonly #tick: number
  readonly #receipt: number
  readonly #at: number
  /** How long the request is refused, or would have been if its rule were enforced. */
  readonly #refusedMs: number
  #outcome: Outcome
  readonly #isBlocked: boolean

  /** Reads the request that belongs to `slot`, and the reply in `own`, the slot of the rule. */
  constructor({ words, doubles }: RingMemory, slot: number, own: number, rule: DecidingRule) {
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
    this.rule = rule.ruleName
    this.#rule = rule
    this.#lo = words[request + LO]!
    this.#hi = words[request + HI]!
    this.#cost = words[request + COST]!
    this.#way = words[own + WAY]!
    this.#tick = words[own + CHARGED_TICK]!
    this.#receipt = words[own + REFUNDS]!
    this.#at = doubles[double + NUMBER]!
    this.#outcome = outcome
    this.#isBlocked = !this.allowed && words[own + BLOCKED] === 1
  }

  /** @internal Makes it one of a quantity, if its rule has a unit. @param cost the requested quantity */
  scale(cost: number): void {
    const { unit } = this.#rule
    if (unit === undefined) return
    this.limit *= unit
    this.remaining *= unit
    this.#cost = cost
  }

  /** @internal Whether an object is one of this engine, and neither a proxy of one nor made from its prototype. */
  static isOf(engine: object, what: unknown): what is PoolDecision {
    return typeof what === 'object' && what !== null && #rule in what && what.#rule === engine
  }

  /** @internal What gives its charge back, in whole units. `at` is the worker's reading, if that is needed. */
  get charge() {
    const place = { lo: this.#lo, hi: this.#hi, way: this.#way }
    const limit = this.limit / (this.#rule.unit ?? 1)
    return { ...place, tick: this.#tick, receipt: this.#receipt, limit, at: this.#at }
  }

  /** @internal The whole units to give back for a part of the cost; undefined if there are none. */
  unitsOf(part = this.#cost): number | undefined {
    if (this.#outcome !== Outcome.CHARGED) return undefined
    if (this.#rule.unit === undefined) return part
    return unitsBetween(this.#cost, this.#cost - part, this.#rule.unit) || undefined
  }

  /** @internal */
  get outcome(): Outcome {
    return this.#outcome
  }

  set outcome(outcome: Outcome) {
    this.#outcome = outcome
  }

  /** @internal Whether it is a refusal of a blocked key. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  get rules(): readonly [PoolDecision] {
    return [this]
  }

  get shadow(): ShadowDecision | undefined {
    if (this.#rule.isShadow !== true) return undefined
    return { allowed: this.#outcome !== Outcome.SHADOWED, retryAfterMs: this.#refusedMs }
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
