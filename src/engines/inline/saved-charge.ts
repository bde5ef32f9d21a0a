// The charge of one rule as plain data. It is valid for all processes with the same memory.
import type { Outcome } from '../../core/inline-decision.js'
import type { RulePart } from '../../core/rules-decision.js'
import { countedOf } from '../../core/unit-decision.js'

/** The outcome, limit, reading, way, tick, stamp and admission word of a decision. `null`: a limit without end. */
export type SavedCharge = readonly [Outcome, number | null, number, number, number, number, number]

export function savedCharge(part: RulePart): SavedCharge {
  const { outcome, limit, at, way, tick, stamp, adm } = countedOf(part)
  return [outcome, limit === Number.POSITIVE_INFINITY ? null : limit, at, way, tick, stamp, adm]
}
