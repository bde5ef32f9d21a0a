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

/** A decision as plain data. `rules` is present only with several rules. */
export function wireDecision(decision: Decision): Record<string, unknown> {
  const { rules, retryAfterSeconds, source } = decision
  const fields = { ...wirePart(decision), retryAfterSeconds }
  const known = source === undefined ? fields : { ...fields, source }
  return rules.length > 1 ? { ...known, rules: rules.map(wirePart) } : known
}

function wirePart(decision: RuleDecision) {
  const { allowed, limit, remaining, retryAfterMs, resetMs, rule, shadow } = decision
  const part = {
    allowed,
    limit: toWire(limit),
    remaining: toWire(remaining),
    retryAfterMs: toWire(retryAfterMs),
    resetMs: toWire(resetMs),
    rule,
    ...(!allowed && isBlocked(decision) && { blocked: true }),
  }
  if (shadow === undefined) return part
  return { ...part, shadow: { ...shadow, retryAfterMs: toWire(shadow.retryAfterMs) } }
}
