import type { Outcome } from '#millrace/core/decision.js'

/** A decision that has just come back. */
export interface Decided {
  readonly key: number
  readonly cost: number
  readonly limit: number
  readonly outcome: Outcome
  /** The charge's tick, as its word. */
  readonly tick: number
  readonly nowMs: number
  /** Whether the way that was charged bears the key's name. */
  readonly isOwnCell: boolean
  /** The reading's tick or the newest that its cell had seen. */
  readonly effectTick: number
}
