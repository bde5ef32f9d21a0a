import { isEnforced } from '../core/verdict.js'
import type { Outage } from './outage.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { Asked } from './remote-store.js'

/** The pause that a refusal by outage asks for: the longest pause between two attempts to reach Redis. */
const RETRY_MS = 1_000

/**
 * A decision that says nothing about the client. Only a limit of 0 decides without the store: nothing that the store
 * has could admit the request.
 */
export function byOutage(
  owner: object,
  { key, cost }: Asked,
  rules: readonly RemoteRule[],
  limits: readonly (number | undefined)[] | undefined,
  allowed: boolean,
  outage: Outage,
): RemoteDecision {
  const closed = cost === 0 ? -1 : rules.findIndex(({ rule }, i) => limits?.[i] === 0 && isEnforced(rule))
  const parts = rules.map(({ rule }, i): RemotePart => {
    const limit = (limits?.[i] ?? rule.limit) * (rule.unit ?? 1)
    if (i === closed) return refusedBy(rule.name)
    return {
      rule: rule.name,
      allowed: allowed || !isEnforced(rule),
      limit,
      remaining: allowed ? limit : 0,
      retryAfterMs: allowed || !isEnforced(rule) ? 0 : RETRY_MS,
      resetMs: allowed ? 0 : RETRY_MS,
      receipt: undefined,
    }
  })
  if (closed >= 0) return new RemoteDecision({ owner, key, cost }, 'local', parts, closed)
  const refusing = allowed ? -1 : parts.findIndex((part) => !part.allowed)
  return new RemoteDecision({ owner, key, cost, outage }, 'outage', parts, refusing)
}

/** What a rule says whose limit is 0. */
function refusedBy(rule: string): RemotePart {
  const retryAfterMs = Number.POSITIVE_INFINITY
  return { rule, allowed: false, limit: 0, remaining: 0, retryAfterMs, resetMs: 0, receipt: undefined }
}
