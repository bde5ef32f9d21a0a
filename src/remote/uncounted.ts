// Limits of a call that need no count. The store decides as if such a rule were asked for nothing, so only a block
// refuses, and what the limit says is put into its decision.

import { isUncounted } from '../core/uncounted-limit.js'
import { enforced, isEnforced, verdictOf } from '../core/verdict.js'
import type { CallLimit } from '../engines/engine.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { Asked, Asking } from './remote-store.js'

const NEVER = Number.POSITIVE_INFINITY

/** A request by limits of which some need no count. */
export class UncountedRequest {
  /** By rule: the limit, if it needs no count. */
  readonly #own: readonly (number | undefined)[]
  readonly #rules: readonly RemoteRule[]
  /** The limits of the other rules. */
  readonly limit: CallLimit | undefined

  private constructor(limits: readonly (number | undefined)[], rules: readonly RemoteRule[]) {
    this.#own = limits.map((limit) => (limit !== undefined && isUncounted(limit) ? limit : undefined))
    this.#rules = rules
    this.limit = limits.map((limit, i) => (this.#own[i] === undefined ? limit : undefined))
  }

  /** Undefined if all rules count. */
  static of(limit: CallLimit | undefined, rules: readonly RemoteRule[]): UncountedRequest | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    if (!limits.some((own) => own !== undefined && isUncounted(own))) return undefined
    return new UncountedRequest(limits, rules)
  }

  asked(asked: Asked): Asked {
    return { ...asked, free: this.#own.map((limit) => limit !== undefined) }
  }

  /** A limit of 0 refuses the cost: no other rule may be charged. */
  op(op: Asking, cost: number): Asking {
    return this.#indexOfRefusing(cost) < 0 ? op : 'peek'
  }

  decision(made: RemoteDecision): RemoteDecision {
    const { requested, source, parts } = made
    const { cost } = requested
    const all = parts.map((part, i) =>
      this.#own[i] === undefined ? part : partBy(part, this.#rules[i]!, this.#own[i], cost),
    )
    const refusing = this.#indexOfRefusing(cost)
    return new RemoteDecision(requested, source, all, refusing < 0 ? made.refusing : refusing)
  }

  /** The index of the first enforced rule whose limit of 0 refuses the cost, or -1. */
  #indexOfRefusing(cost: number): number {
    return cost === 0
      ? -1
      : this.#own.findIndex((limit, i) => limit === 0 && isEnforced(this.#rules[i]!.rule))
  }
}

/** What a rule says that was asked for nothing: it has refused if the key is blocked. */
function partBy(part: RemotePart, { rule }: RemoteRule, limit: number, cost: number): RemotePart {
  const { retryAfterMs: blockedMs } = verdictOf(part)
  const verdict = {
    allowed: blockedMs === 0 && cost <= limit,
    retryAfterMs: cost > limit ? NEVER : blockedMs,
  }
  const figures = { limit, remaining: blockedMs > 0 ? 0 : limit, resetMs: blockedMs }
  return { ...part, ...figures, ...enforced(verdict, rule) }
}
