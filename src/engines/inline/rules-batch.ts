import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import { secondsOf } from '../../core/decision-fields.js'
import type { Inspect } from '../../core/inspect.js'
import type { RulesDecision } from '../../core/rules-decision.js'
import { KEYS_PER_READING } from '../../native/native-params.js'
import { checkEntry, inspectBatch } from './batch.js'
import { type Limits, NO_LIMITS } from './rule-engine.js'

/** What a batch needs of the engine of several rules. */
interface RulesEngine {
  readonly countsInUnits: boolean
  takeReading(): void
  check(lo: number, hi: number, cost: number, hint: number, limits: Limits): RulesDecision
}

/**
 * Decides every key in order by several rules, also a key that stands twice. The arguments have been checked,
 * and no other code changes them.
 */
export function decideRulesBatch(
  engine: RulesEngine,
  fingerprints: Int32Array,
  costs: Costs,
  withRemaining: boolean,
): BatchDecision {
  const length = fingerprints.length / 2
  const remaining = engine.countsInUnits ? new Float64Array(length) : new Int32Array(length)
  const batch = new RulesBatch(length, withRemaining ? remaining : undefined)
  batch.decideAll(engine, fingerprints, costs)
  return batch
}

class RulesBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array | Float64Array
  /** By index: the refusals, which compute `retryAfterMs` when it is read. */
  readonly #refusals = new Map<number, RulesDecision>()

  constructor(length: number, remaining: Int32Array | Float64Array | undefined) {
    this.length = length
    this.allowed = new Uint8Array(length)
    if (remaining) this.remaining = remaining
  }

  decideAll(engine: RulesEngine, fingerprints: Int32Array, costs: Costs): void {
    for (let i = 0; i < this.length; i++) {
      if (i % KEYS_PER_READING === 0) engine.takeReading()
      const cost = typeof costs === 'number' ? costs : costs[i]!
      const decision = engine.check(fingerprints[2 * i]!, fingerprints[2 * i + 1]!, cost, -1, NO_LIMITS)
      if (this.remaining) this.remaining[i] = decision.remaining
      if (decision.allowed) this.allowed[i] = 1
      else this.#refusals.set(i, decision)
    }
  }

  retryAfterMs(i: number): number {
    checkEntry(i, this.length)
    return this.#refusals.get(i)?.retryAfterMs ?? 0
  }

  retryAfterSeconds(i: number): number {
    return secondsOf(this.retryAfterMs(i))
  }

  source(i: number): undefined {
    checkEntry(i, this.length)
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectBatch(this, options, inspect)
  }
}
