import { createLimiter, type Decision, type Edge, manualClock, type RuleOptions } from 'millrace'
import { type Counts, type JudgedRule, judge, type RefusedClient, type RuleCounts } from './judge.js'
import { inOrder, type Traffic } from './traffic.js'

/** A rule and its refusals. */
export type ReplayedRule = JudgedRule & RuleCounts

/** The result of a replay. */
export interface Replay extends Counts {
  requests: number
  clients: number
  refusedClients: number
  /** One or more, in order. */
  rules: readonly ReplayedRule[]
  /** The edge of all rules. */
  edge: Edge
  /** Times of the first and last request in milliseconds since 1970; null without requests. */
  firstMs: number | null
  lastMs: number | null
  /** All clients with refusals, the most refusals first. */
  refusedMost: RefusedClient[]
  /** 1 for each admitted request, in the order of the traffic. */
  admitted: Uint8Array
}

/**
 * Whether the limiter violated a guarantee, which is a bug. The edge `smooth` may admit more than the limit.
 */
export function violatesGuarantee({ edge, wronglyAdmitted, refusedTooEarly }: Replay): boolean {
  return refusedTooEarly > 0 || (edge === 'strict' && wronglyAdmitted > 0)
}

/**
 * Sorts the requests by time and decides each with a limiter whose clock is set to the request's time. Checks
 * every decision against an exact log of the limiter's earlier admissions. The rules have the same edge.
 * @throws MillraceError for an invalid rule
 */
export function replay(
  traffic: Traffic,
  rules: readonly RuleOptions[],
  onProgress: (done: number) => void,
): Replay {
  const order = inOrder(traffic)
  const clock = manualClock(order.length === 0 ? 0 : traffic.atMs[order[0]!]!)
  const maxKeys = Math.max(1_000, 2 * traffic.clients.length) // large enough that no key is evicted; unused room takes no memory
  const limiter = createLimiter({ rules, maxKeys, clock })
  const decidedBy = limiter.rules
  const { atMs } = traffic
  const refusers = new Uint16Array(order.length)
  for (let i = 0; i < order.length; i++) {
    const request = order[i]!
    clock.set(atMs[request]!)
    const decision = limiter.check(traffic.clients[traffic.client[request]!]!)
    if (!decision.allowed) refusers[request] = refusersOf(decision)
    if (i % 4096 === 0) onProgress(i)
  }
  void limiter.close()

  const { counts, rules: byRule, refusedMost } = judge(traffic, order, refusers, decidedBy)
  refusedMost.sort((a, b) => b.refused - a.refused || b.requests - a.requests)
  return {
    requests: order.length,
    clients: traffic.clients.length,
    refusedClients: refusedMost.length,
    ...counts,
    rules: decidedBy.map(({ name, limit, windowMs, granularityMs }, i) => {
      return { name, limit, windowMs, granularityMs, ...byRule[i]! }
    }),
    edge: decidedBy[0]!.edge,
    firstMs: order.length > 0 ? atMs[order[0]!]! : null,
    lastMs: order.length > 0 ? atMs[order.at(-1)!]! : null,
    refusedMost,
    admitted: Uint8Array.from(refusers, (by) => (by === 0 ? 1 : 0)),
  }
}

/** A bit for each rule that refused, the first rule in the lowest bit. A limiter has at most 16 rules. */
function refusersOf({ rules }: Decision): number {
  return rules.reduce((bits, { allowed }, i) => (allowed ? bits : bits | (1 << i)), 0)
}
