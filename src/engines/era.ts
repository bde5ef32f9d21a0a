import type { Epochs } from '../algorithms/epochs.js'
import type { DecisionSource } from '../core/decision.js'
import type { InlineEngine } from './inline.js'
import type { Outlook } from './outlook.js'

/** The source of the decisions that an engine makes in one era of its epochs. */
export class Era implements DecisionSource {
  readonly engine: InlineEngine
  readonly ruleName: string
  readonly outlook: Outlook
  readonly #epochs: Epochs
  readonly #begun: Uint32Array

  constructor(engine: InlineEngine, epochs: Epochs) {
    this.engine = engine
    this.ruleName = engine.ruleName
    this.outlook = engine.outlook
    this.#epochs = epochs
    this.#begun = epochs.begun
  }

  /** @see DecisionSource */
  isTold(way: number): boolean {
    return this.#epochs.areFew(this.#begun, way)
  }
}
