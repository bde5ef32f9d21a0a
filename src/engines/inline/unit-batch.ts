import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { DecisionSource } from '../../core/decision-source.js'
import type { Inspect } from '../../core/inspect.js'
import { unitsOf } from '../../core/units.js'
import { inspectBatch } from './batch.js'

/** The costs of a batch in whole units. */
export function unitCosts(costs: Costs, unit: number): Costs {
  if (typeof costs === 'number') return unitsOf(costs, unit)
  return Float64Array.from(costs, (cost) => unitsOf(cost, unit))
}

/** The decisions of a batch by a rule with the option `unit`. */
export class UnitBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Float64Array
  readonly #counted: BatchDecision

  constructor(counted: BatchDecision, unit: number) {
    this.length = counted.length
    this.allowed = counted.allowed
    if (counted.remaining) this.remaining = Float64Array.from(counted.remaining, (units) => units * unit)
    this.#counted = counted
  }

  retryAfterMs(i: number): number {
    return this.#counted.retryAfterMs(i)
  }

  retryAfterSeconds(i: number): number {
    return this.#counted.retryAfterSeconds(i)
  }

  source(i: number): DecisionSource | undefined {
    return this.#counted.source(i)
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectBatch(this, options, inspect)
  }
}
