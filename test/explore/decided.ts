import type { Outcome } from '#millrace/core/inline-decision.js'

/** A decision that has just returned. */
export interface Decided {
  readonly key: number
  readonly cost: number
  readonly limit: number
  readonly outcome: Outcome
  /** The charged tick as a tick word: shifted by its record, modulo the ticks' modulus. */
  readonly tick: number
  readonly nowMs: number
  /** The way of the key, or -1. */
  readonly way: number
}
