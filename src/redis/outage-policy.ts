import { RemoteDecision, type RemotePart } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { Asked } from './remote-store.js'

/** The pause that a refusal by outage asks for: the longest pause between two attempts to reach Redis. */
const RETRY_MS = 1_000

/** A decision that says nothing about the client. */
export function byOutage(
  owner: object,
  { key, cost }: Asked,
  rules: readonly RemoteRule[],
  limits: readonly (number | undefined)[] | undefined,
  allowed: boolean,
  cause: unknown,
): RemoteDecision {
  const parts = rules.map(({ rule }, i): RemotePart => {
    const limit = (limits?.[i] ?? rule.limit) * (rule.unit ?? 1)
    return {
      rule: rule.name,
      allowed: allowed || rule.shadow === true,
      limit,
      remaining: allowed ? limit : 0,
      retryAfterMs: allowed || rule.shadow ? 0 : RETRY_MS,
      resetMs: allowed ? 0 : RETRY_MS,
      receipt: undefined,
    }
  })
  const refusing = allowed ? -1 : parts.findIndex((part) => !part.allowed)
  return new RemoteDecision({ owner, key, cost, cause }, 'outage', parts, refusing)
}
