// What goes over the wire: decisions and limits as JSON, which has no Infinity.
import type { Decision, RuleDecision } from 'millrace'
import { isBlocked } from 'millrace/internal'

/** A number, or `"Infinity"`. */
export type WireNumber = number | 'Infinity'

/** `Infinity` as the text `"Infinity"`: JSON would write `null`. */
export const toWire = (figure: number): WireNumber =>
  figure === Number.POSITIVE_INFINITY ? 'Infinity' : figure

export const fromWire = (figure: WireNumber): number =>
  figure === 'Infinity' ? Number.POSITIVE_INFINITY : figure

/** A decision, or the part of one rule in it, as plain data. */
interface WireDecision {
  readonly allowed: boolean
  readonly limit: WireNumber
  readonly remaining: WireNumber
  readonly retryAfterMs: WireNumber
  readonly resetMs: WireNumber
  readonly rule: string
  blocked?: true
  shadow?: object
  retryAfterSeconds?: number
  source?: string
  rules?: readonly WireDecision[]
}

/** A decision as plain data. `rules` is present only with several rules. */
export function wireDecision(decision: Decision): WireDecision {
  const { rules, retryAfterSeconds, source } = decision
  const answer = wirePart(decision)
  answer.retryAfterSeconds = retryAfterSeconds
  if (source !== undefined) answer.source = source
  if (rules.length > 1) answer.rules = rules.map(wirePart)
  return answer
}

/** What most decisions lack is added afterwards: to spread objects takes longer than to decide. */
function wirePart(part: RuleDecision): WireDecision {
  const { allowed, limit, remaining, retryAfterMs, resetMs, rule, shadow } = part
  const answer: WireDecision = {
    allowed,
    limit: toWire(limit),
    remaining: toWire(remaining),
    retryAfterMs: toWire(retryAfterMs),
    resetMs: toWire(resetMs),
    rule,
  }
  if (!allowed && isBlocked(part)) answer.blocked = true
  if (shadow !== undefined) answer.shadow = { ...shadow, retryAfterMs: toWire(shadow.retryAfterMs) }
  return answer
}
