// A decision of a store as plain data, for a refund by another process that uses the same store, prefix and rules.
import { verdictOf } from '../core/verdict.js'
import { type Receipt, restoredLimit, savedLimit } from '../limiters/receipts.js'
import { RemoteDecision, type RemotePart } from './remote-decision.js'

/** What one rule has charged: whether it has room, its limit, and where the charge is. */
type SavedPart = readonly [isAllowed: boolean, limit: number | null, receipt: readonly number[] | null]

interface Saved {
  readonly key: string
  readonly cost: number
  readonly limits: readonly (number | null)[] | null
  readonly allowed: boolean
  readonly parts: readonly SavedPart[]
}

export function savedDecision(decision: RemoteDecision): Receipt {
  const { key, cost, limits } = decision.requested
  const parts = decision.parts.map((part): SavedPart => {
    return [verdictOf(part).allowed, savedLimit(part.limit), part.receipt ?? null]
  })
  const own = limits?.map((limit) => limit ?? null) ?? null
  return { key, cost, limits: own, allowed: decision.allowed, parts } satisfies Saved
}

export function restoredDecision(owner: object, receipt: Receipt): RemoteDecision {
  const { key, cost, limits, allowed, parts } = receipt as unknown as Saved
  const own = limits?.map((limit) => limit ?? undefined)
  return new RemoteDecision({ owner, key, cost, limits: own }, undefined, parts.map(partOf), allowed ? -1 : 0)
}

/** Its verdict is that of the rule, and the figures are of no use to a refund. */
function partOf([allowed, limit, receipt]: SavedPart): RemotePart {
  const figures = { rule: '', limit: restoredLimit(limit), remaining: 0, retryAfterMs: 0, resetMs: 0 }
  return { ...figures, allowed, receipt: receipt ?? undefined }
}
