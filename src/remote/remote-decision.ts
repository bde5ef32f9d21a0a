import type { RuleDecision } from '../core/decision.js'
import { KnownDecision } from '../core/known-decision.js'
import type { Rule } from '../core/rule.js'
import { unitsOf } from '../core/units.js'
import { countsRefusals, verdictOf } from '../core/verdict.js'
import type { Outage } from './outage.js'

/** What one rule says of a request. */
export interface RemotePart extends RuleDecision {
  /**
   * Where the charge is, as the store writes it; undefined if nothing was charged. On one server: the mark, and the
   * birth of the value.
   */
  readonly receipt: readonly number[] | undefined
  /** In place of it, of a decision service that has charged something: the same of all rules. */
  readonly token?: string
  /** The birth of the key's value; undefined if Redis has not decided. */
  readonly birth?: number
  /** Whether the key is blocked. */
  readonly isBlocked?: boolean
}

/** Whether a rule has charged a request by `check` that it has refused. @param limit in units */
export function hasCounted(rule: Rule, part: RemotePart, cost: number, limit: number): boolean {
  if (!countsRefusals(rule) || verdictOf(part).allowed) return false
  return cost > 0 && unitsOf(cost, rule.unit ?? 1) <= limit
}

/** The request of a decision, for a refund. */
export interface Requested {
  readonly owner: object
  readonly key: string
  readonly cost: number
  /** The limits of the call, in units. */
  readonly limits?: readonly (number | undefined)[] | undefined
  /** Why the store has not answered it. */
  readonly outage?: Outage
}

/** A decision that was made elsewhere. */
export class RemoteDecision extends KnownDecision<RemotePart, Requested> {
  #isGivenBack = false

  /** @internal Whether a rule has charged something. */
  get isCharged(): boolean {
    return this.rules.some(({ receipt, token }) => receipt !== undefined || token !== undefined)
  }

  /** @internal The receipts as the store takes them: two texts for each rule. */
  get receipts(): string[] {
    return this.rules.flatMap(({ receipt }) => receipt?.map(String) ?? ['', ''])
  }

  /** @internal Why the store has not answered, for a decision without it. */
  get cause(): unknown {
    return this.requested.outage?.cause
  }

  /** @internal Whether the store may have charged it all the same; undefined: the store has decided, or several have. */
  get mayBeCharged(): boolean | undefined {
    return this.requested.outage?.mayBeCharged
  }

  /** @internal Whether its charge has been given back. */
  get isGivenBack(): boolean {
    return this.#isGivenBack
  }

  /** @internal A charge is given back once. */
  giveBack(): void {
    this.#isGivenBack = true
  }

  /** @internal Its refund has failed: it may be tried again. */
  keep(): void {
    this.#isGivenBack = false
  }

  /** @internal The same refusal `ms` later, of a cost that is as large or larger. Undefined: it has ended. */
  later(ms: number, cost: number): RemoteDecision | undefined {
    if (this.retryAfterMs <= ms) return undefined
    const parts = this.rules.map((part) => ({
      ...part,
      retryAfterMs: part.allowed ? 0 : Math.max(1, part.retryAfterMs - ms),
      resetMs: Math.max(0, part.resetMs - ms),
    }))
    return new RemoteDecision({ ...this.requested, cost }, this.source, parts, this.refusing)
  }
}
