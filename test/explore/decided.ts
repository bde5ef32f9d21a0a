import type { Outcome } from '#millrace/core/decision.js'

/** A decision that has just returned. */
export interface Decided {
  readonly key: number
  readonly cost: number
  readonly limit: number
  readonly outcome: Outcome
  /** The charged tick as a tick word: modulo the ticks' modulus. */
  readonly tick: number
  readonly nowMs: number
  /** Whether the charged way has the name of the key. */
  readonly isOwnCell: boolean
  /** The tick of the reading or the newest tick of the cell, whichever is later. */
  readonly effectTick: number
}
