import { countsRefusals, enforced, isEnforced } from '../core/verdict.js'
import type { RemotePart } from '../remote/remote-decision.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { Asking } from '../remote/remote-store.js'
import { untilAtMost, usedUnits } from '../remote/sliding-counter.js'

/** A rule of one call: its window, its counters, and what requests have charged to it so far. */
export interface RuleCount {
  readonly rule: RemoteRule['rule']
  /** The limit of the call, in units. */
  readonly limit: number
  readonly windowMs: number
  /** The present window since 1970. */
  readonly index: number
  readonly elapsedMs: number
  readonly previous: number
  current: number
}

/** The units of a cost in each rule. */
export type UnitCosts = readonly number[]

/** What the rules say of one request, and which one refuses it: -1 if none does. */
export interface Verdict {
  readonly parts: readonly RemotePart[]
  readonly refusing: number
}

const isAbove = ({ rule, limit }: RuleCount, units: number): boolean => isEnforced(rule) && units > limit

/** The units that a request may charge to each rule, by any counters. */
export function chargeable(counts: readonly RuleCount[], costs: UnitCosts): number[] {
  const isPossible = !counts.some((count, i) => isAbove(count, costs[i]!))
  return counts.map(({ rule, limit }, i) =>
    costs[i]! <= limit && (isPossible || countsRefusals(rule)) ? costs[i]! : 0,
  )
}

/**
 * Decides a request by all rules, all or nothing, and charges `current` of each rule.
 * @param untilMs the end of the key's block
 */
export function decideOne(
  op: Asking,
  counts: readonly RuleCount[],
  costs: UnitCosts,
  nowMs: number,
  untilMs: number,
): Verdict {
  const blockedMs = Math.max(0, untilMs - nowMs)
  const over = counts.map((count, i) => costs[i]! > 0 && usedUnits(count) + costs[i]! > count.limit)
  const isRefused = over.map((isOver) => isOver || blockedMs > 0)
  const refuses = counts.map(({ rule }, i) => isRefused[i]! && isEnforced(rule))
  const above = counts.findIndex((count, i) => isAbove(count, costs[i]!))
  const refusing = above >= 0 ? above : refuses.indexOf(true)
  const parts = counts.map((count, i): RemotePart => {
    const { rule, limit, index } = count
    const units = costs[i]!
    const unit = rule.unit ?? 1
    const room = limit - units
    const isCharged = op !== 'peek' && refusing < 0 && !isRefused[i]! && units > 0
    const countsRefusal = op === 'check' && isRefused[i]! && countsRefusals(rule) && units <= limit
    let retryMs = over[i] ? untilAtMost(room, count) : 0
    if (isCharged || countsRefusal) count.current += units
    if (countsRefusal && units > 0) retryMs = untilAtMost(room, count) // it must wait for its own charge, too
    retryMs = isRefused[i] ? Math.max(1, retryMs, blockedMs) : 0
    const used = usedUnits(count)
    return {
      rule: rule.name,
      limit: limit * unit,
      remaining: blockedMs > 0 ? 0 : Math.max(0, limit - used) * unit,
      resetMs: Math.max(untilAtMost(0, count), blockedMs),
      receipt: isCharged ? [index, 0] : undefined,
      ...(blockedMs > 0 && { isBlocked: true }),
      ...enforced({ allowed: !isRefused[i], retryAfterMs: retryMs }, rule),
    }
  })
  return { parts, refusing }
}
