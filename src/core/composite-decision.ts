import type { RuleDecision, ShadowDecision } from './decision.js'
import { secondsOf } from './decision-fields.js'
import { strictestVerdict, verdictOf, wasEnforced } from './verdict.js'

/**
 * A decision of several parts: the rules of a limiter, or the members of a group. It takes its fields from
 * them when they are read.
 *
 * If a part refused, the others charged nothing, or gave their charges back. They are peeks after that. An
 * allowed part stays allowed while nothing else is charged. So the request fits all parts when it fits the
 * last of those that refuse.
 *
 * The class has only getters, so that the constructor of a decision costs no more.
 */
export abstract class CompositeDecision<P extends RuleDecision> {
  abstract readonly allowed: boolean
  /** @internal The parts, in order. */
  abstract get parts(): readonly P[]
  /** @internal The part that refused. Of an admission: the one with the smallest part of its limit left. */
  protected abstract get decidingPart(): P

  get rule(): string {
    return this.decidingPart.rule
  }

  get limit(): number {
    return this.decidingPart.limit
  }

  get remaining(): number {
    return this.decidingPart.remaining
  }

  get retryAfterMs(): number {
    if (this.allowed) return 0
    let longest = 0
    for (const part of this.parts) longest = Math.max(longest, part.retryAfterMs)
    return longest
  }

  get retryAfterSeconds(): number {
    return secondsOf(this.retryAfterMs)
  }

  get resetMs(): number {
    return this.decidingPart.resetMs
  }

  /** As if the rules with the option `shadow` were enforced, too. */
  get shadow(): ShadowDecision | undefined {
    const { parts } = this
    if (parts.every(wasEnforced)) return undefined
    const { allowed, retryAfterMs } = strictestVerdict(parts.map(verdictOf))
    return { allowed: this.allowed && allowed, retryAfterMs }
  }
}
