import { strictest } from '../../core/verdict.js'
import { RemoteDecision, type RemotePart, type Requested } from '../../remote/remote-decision.js'
import { packReceipts } from './receipts.js'

/** A decision, and the number of the shard or part that has made it. */
export interface PlacedDecision {
  readonly place: number
  readonly decision: RemoteDecision
}

/**
 * One decision of several about the same request: admitted if all have admitted it. Each rule has the least
 * `remaining` and the longest times.
 */
export function merged(requested: Requested, all: readonly PlacedDecision[]): RemoteDecision {
  const [first] = all as [PlacedDecision]
  const refusing = all.find(({ decision }) => !decision.allowed)?.decision
  const parts = first.decision.parts.map((_, i) => mergedPart(all, i, refusing === undefined))
  const index = refusing === undefined ? -1 : parts.findIndex(({ rule }) => rule === refusing.rule)
  return new RemoteDecision(requested, first.decision.source, parts, index)
}

function mergedPart(all: readonly PlacedDecision[], index: number, allowed: boolean): RemotePart {
  const each = all.map(({ place, decision }) => ({ place, part: decision.parts[index]! }))
  const parts = each.map(({ part }) => part)
  const receipts = each.flatMap(({ place, part: { receipt } }) =>
    allowed && receipt !== undefined ? [{ place, receipt }] : [],
  )
  return {
    rule: parts[0]!.rule,
    limit: parts[0]!.limit,
    remaining: Math.min(...parts.map(({ remaining }) => remaining)),
    resetMs: Math.max(...parts.map(({ resetMs }) => resetMs)),
    receipt: packReceipts(receipts),
    ...(parts.some(({ isBlocked }) => isBlocked) && { isBlocked: true }),
    ...strictest(parts),
  }
}
