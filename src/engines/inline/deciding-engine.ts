import type { Algorithm } from '../../algorithms/algorithm.js'
import type { FiguresDemand } from '../../core/figures-demand.js'
import type { EngineEra, Outcome } from '../../core/inline-decision.js'
import type { Reading } from '../../core/reading.js'
import type { NativeBatches } from '../../native/batches.js'
import type { DecisionEstimates } from './decision-estimates.js'
import type { NearLimit } from './near-limit.js'

/** What the parts of an inline engine know of it. `inline.ts` is the engine. */
export interface DecidingEngine {
  readonly ruleName: string
  readonly isShadow: boolean
  readonly demand: FiguresDemand
  readonly near: NearLimit
  readonly estimates: DecisionEstimates
  readonly reading: Reading
  readonly native: NativeBatches | undefined
  readonly era: EngineEra
  readonly limit: number
  /** The way of the last decision. */
  way: number
  /** What the last decision has found. */
  readonly last: Pick<Algorithm, 'chargedTick' | 'lastAdm' | 'lastUntil' | 'blockMask'>
  decide(lo: number, hi: number, cost: number, limit: number, hint: number): Outcome
  tally(allowed: number, denied: number): void
  tallyBlocked(refused: number): void
  tallyNear(admitted: number): void
}
