import type { Decision } from '../core/decision.js'
import { KnownDecision } from '../core/known-decision.js'

/** The refusal of a key whose policy is not known, with `onMiss: 'refuse'`. Nothing is charged. */
export function pendingDecision(rule: string, forMs: number): Decision {
  const retryAfterMs = Math.max(1, Math.ceil(forMs))
  const part = { rule, allowed: false, limit: 0, remaining: 0, retryAfterMs, resetMs: retryAfterMs }
  return new KnownDecision(undefined, 'config', [part], 0)
}

export const isPending = (what: unknown): boolean => KnownDecision.is(what) && what.source === 'config'
