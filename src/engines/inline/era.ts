import type { Epochs } from '../../algorithms/epochs.js'
import type { FiguresDemand } from '../../core/figures-demand.js'
import type { EngineEra } from '../../core/inline-decision.js'
import type { DecidingEngine } from './deciding-engine.js'
import type { DecisionEstimates } from './decision-estimates.js'

/**
 * The common properties of all decisions that an engine makes in one era of its epochs
 * (`algorithms/epochs.ts`).
 */
export class Era implements EngineEra {
  readonly engine: DecidingEngine
  readonly ruleName: string
  readonly isShadow: boolean
  readonly demand: FiguresDemand
  readonly estimates: DecisionEstimates
  readonly #epochs: Epochs
  readonly #begun: Uint32Array

  constructor(engine: DecidingEngine, epochs: Epochs) {
    this.engine = engine
    this.ruleName = engine.ruleName
    this.isShadow = engine.isShadow
    this.demand = engine.demand
    this.estimates = engine.estimates
    this.#epochs = epochs
    this.#begun = epochs.begun
  }

  /** @see EngineEra */
  canTrustEpoch(way: number): boolean {
    return this.#epochs.isWithinEpochs(this.#begun, way)
  }
}
