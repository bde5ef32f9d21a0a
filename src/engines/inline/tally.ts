import type { Decision } from '../../core/decision.js'
import type { FigureCounts } from '../../core/decision-counts.js'
import { Outcome } from '../../core/inline-decision.js'
import { hasOutcome } from '../../core/rules-decision.js'
import type { Arena } from '../../memory/records.js'
import { countDecisions } from '../../memory/statistics.js'

/**
 * After this many admissions, or refusals, a thread adds its counts to the shared statistics. An atomic
 * addition costs a tenth of a decision.
 */
const DECISIONS_PER_FLUSH = 128

/** Counts the decisions of one engine. Its methods are short, so that V8 inlines them in a decision. */
export class Tally {
  readonly #arena: Arena | undefined
  readonly #isShadow: boolean
  #allowed = 0
  #denied = 0
  #shadowDenied = 0
  /** What has been flushed. */
  readonly #flushed = { admitted: 0, refused: 0, shadowRefused: 0 }
  /** Refusals of keys that were blocked. */
  blocked = 0
  /** Admissions that left a key near its limit. */
  nearLimit = 0

  /** Without an arena the counts are dropped. `isShadow`: the rule is not enforced. */
  constructor(arena: Arena | undefined, isShadow = false) {
    this.#arena = arena
    this.#isShadow = isShadow
  }

  admit(): void {
    if (++this.#allowed >= DECISIONS_PER_FLUSH) this.flush()
  }

  refuse(): void {
    if (++this.#denied >= DECISIONS_PER_FLUSH) this.flush()
  }

  /** Counts an admission by a rule that has no room, and is not enforced. */
  admitInShadow(): void {
    this.#shadowDenied++
    this.admit()
  }

  /** Counts an outcome, and returns it; or SHADOWED for a refusal by a rule that is not enforced. */
  count(outcome: Outcome): Outcome {
    if (outcome >= Outcome.UNCOUNTED) this.admit()
    else if (this.#isShadow) {
      this.admitInShadow()
      return Outcome.SHADOWED
    } else this.refuse()
    return outcome
  }

  /** Counts decisions. A number below 0 takes back decisions that have been counted. */
  add(allowed: number, denied: number, shadowDenied = 0): void {
    this.#allowed += allowed
    this.#denied += denied
    this.#shadowDenied += shadowDenied
    if (this.#allowed + this.#denied >= DECISIONS_PER_FLUSH) this.flush()
  }

  /** Takes back a decision that has been counted, perhaps by a worker. @see Engine.uncount */
  uncount(decision: Decision, near: number): void {
    if (decision.allowed) {
      this.add(-1, 0, hasOutcome(decision, Outcome.SHADOWED) ? -1 : 0)
      if (near !== 0) this.nearLimit--
    } else {
      this.add(0, -1)
      if ((decision as { readonly isBlocked?: boolean }).isBlocked) this.blocked--
    }
  }

  /** Adds the counts to the shared statistics. */
  flush(): void {
    if (this.#arena) countDecisions(this.#arena, this.#allowed, this.#denied, this.#shadowDenied)
    this.#flushed.admitted += this.#allowed
    this.#flushed.refused += this.#denied
    this.#flushed.shadowRefused += this.#shadowDenied
    this.#allowed = 0
    this.#denied = 0
    this.#shadowDenied = 0
  }

  /** All that this engine has counted. A decision costs nothing for it: it is added up when it is flushed. */
  own(): FigureCounts {
    this.flush()
    return { ...this.#flushed, blocked: this.blocked, nearLimit: this.nearLimit }
  }
}
