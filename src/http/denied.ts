import type { Decision } from '../core/decision.js'
import { KnownDecision } from '../core/known-decision.js'

/** The decision about a request from an address of the option `deny`: no time admits it. */
export function deniedDecision(): Decision {
  const ms = Number.POSITIVE_INFINITY
  const part = { rule: 'deny', allowed: false, limit: 0, remaining: 0, retryAfterMs: ms, resetMs: ms }
  return new KnownDecision(undefined, undefined, [part], 0)
}
