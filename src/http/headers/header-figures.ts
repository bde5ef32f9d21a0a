/** The numbers of header fields. */
import type { Decision, RuleDecision } from '../../core/decision.js'
import { MAX_RETRY_SECONDS, secondsOf } from '../../core/decision-fields.js'
import { NEVER } from '../value-cache.js'

/** The largest integer of a structured field, 15 digits (RFC 9651, section 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999
const MAX_RETRY_MS = MAX_RETRY_SECONDS * 1_000

/** A limit or the rest of one: with the option `unit` it may be larger than a header can say. */
export function wholeUnits(units: number): number {
  return units < MAX_INTEGER ? units : MAX_INTEGER
}

export function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1_000)
}

/** The parameter `w` of a policy. Nothing, if the window is not known: NaN. */
export function windowParameter(windowMs: number): string {
  return Number.isNaN(windowMs) ? '' : `;w=${wholeSeconds(windowMs)}`
}

/**
 * The time of a structured field: seconds until a refused request would be admitted, else until the whole
 * limit is available. `NEVER` for a cost above the limit and for a key that is blocked for ever. It reads only
 * the figure that it needs: each is computed when it is read.
 */
export function secondsFor(part: Pick<RuleDecision, 'allowed' | 'resetMs' | 'retryAfterMs'>): number {
  const ms = part.allowed ? part.resetMs : part.retryAfterMs
  if (ms === Number.POSITIVE_INFINITY) return NEVER
  return part.allowed ? wholeSeconds(ms) : secondsOf(ms)
}

/**
 * The time of the older forms, which must have one. Of a cost above the limit, it is until the whole limit is
 * available; for ever is the largest `retryAfterSeconds`.
 * @param part the decision of the rule that is shown
 */
export function resetMsFor(decision: Decision, part: Pick<RuleDecision, 'resetMs'>): number {
  if (!decision.allowed) {
    const ms = decision.retryAfterMs
    return Math.min(ms === Number.POSITIVE_INFINITY ? part.resetMs : ms, MAX_RETRY_MS)
  }
  const ms = part.resetMs
  return ms === Number.POSITIVE_INFINITY ? MAX_RETRY_MS : ms
}
