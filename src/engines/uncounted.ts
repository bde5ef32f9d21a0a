import { type EngineEra, InlineDecision, isRefusal, Outcome } from '../core/inline-decision.js'
import { verdictOf } from '../core/verdict.js'
import type { Tally } from './inline/tally.js'

/**
 * A decision without a limit. `Infinity` is no small integer: a class of its own keeps the fields of other decisions
 * small.
 */
class UnlimitedDecision extends InlineDecision {}

/**
 * Decides by a limit that needs no count. `free` is the decision of a cost of 0, which only a block refuses: it has the
 * key's way and the time of the block.
 * @param tally counts the decision; undefined for a peek
 */
export function decidedUncounted(
  free: InlineDecision,
  limit: number,
  cost: number,
  { era }: { readonly era: EngineEra },
  tally?: Tally,
): InlineDecision {
  const { lo, hi, at, way } = free
  const blockedMs = verdictOf(free).retryAfterMs
  const found = blockedMs > 0 || cost > limit ? Outcome.REFUSED : Outcome.UNCOUNTED
  const peeked = era.isShadow && isRefusal(found) ? Outcome.SHADOWED : found
  const outcome = tally === undefined ? peeked : tally.count(found)
  const Made = limit === 0 ? InlineDecision : UnlimitedDecision
  const made = new Made(era, lo, hi, cost, limit, at, outcome, way, 0, 0, 0)
  made.show(blockedMs > 0 ? 0 : limit, cost > limit ? Number.POSITIVE_INFINITY : blockedMs, blockedMs)
  return made
}
