import { DecidedBatch } from '../../core/base-batch.js'
import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { RulesDecision } from '../../core/rules-decision.js'
import { KEYS_PER_READING } from '../../native/native-params.js'
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
  const batch = new DecidedBatch(fingerprints.length / 2, withRemaining, engine.countsInUnits)
  for (let i = 0; i < batch.length; i++) {
    if (i % KEYS_PER_READING === 0) engine.takeReading()
    const cost = typeof costs === 'number' ? costs : costs[i]!
    batch.add(i, engine.check(fingerprints[2 * i]!, fingerprints[2 * i + 1]!, cost, -1, NO_LIMITS))
  }
  return batch
}
