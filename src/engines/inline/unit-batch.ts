import { BaseBatch } from '../../core/base-batch.js'
import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import { unitsOf } from '../../core/units.js'

/** The costs of a batch in whole units. */
export function unitCosts(costs: Costs, unit: number): Costs {
  if (typeof costs === 'number') return unitsOf(costs, unit)
  return Float64Array.from(costs, (cost) => unitsOf(cost, unit))
}

/** The decisions of a batch by a rule with the option `unit`. */
export class UnitBatch extends BaseBatch<Float64Array> {
  readonly #counted: BatchDecision

  constructor(counted: BatchDecision, unit: number) {
    const { length, allowed, remaining } = counted
    super(length, remaining && Float64Array.from(remaining, (units) => units * unit), allowed)
    this.#counted = counted
  }

  protected waitOf(i: number): number {
    return this.#counted.retryAfterMs(i)
  }
}
