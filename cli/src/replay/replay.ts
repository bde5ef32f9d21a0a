import { createLimiter, type Edge, manualClock, type RuleOptions } from 'millrace'
import { type Counts, judge, type RefusedClient } from './judge.js'
import { inOrder, type Traffic } from './traffic.js'

/** The result of a replay. */
export interface Replay extends Counts {
  requests: number
  clients: number
  refusedClients: number
  limit: number
  windowMs: number
  granularityMs: number
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
 * every decision against an exact log of the limiter's earlier admissions.
 * @throws MillraceError for an invalid rule
 */
export function replay(traffic: Traffic, rule: RuleOptions, onProgress: (done: number) => void): Replay {
  const order = inOrder(traffic)
  const clock = manualClock(order.length === 0 ? 0 : traffic.atMs[order[0]!]!)
  const maxKeys = Math.max(1_000, 2 * traffic.clients.length) // large enough that no key is evicted; unused room takes no memory
  const limiter = createLimiter({ ...rule, maxKeys, clock })
  const { windowMs, granularityMs, edge } = limiter.rule
  const { limit } = rule
  const { atMs } = traffic
  const admitted = new Uint8Array(order.length)
  for (let i = 0; i < order.length; i++) {
    const request = order[i]!
    clock.set(atMs[request]!)
    if (limiter.check(traffic.clients[traffic.client[request]!]!).allowed) admitted[request] = 1
    if (i % 4096 === 0) onProgress(i)
  }
  void limiter.close()

  const { counts, refusedMost } = judge(traffic, order, admitted, { limit, windowMs, granularityMs })
  refusedMost.sort((a, b) => b.refused - a.refused || b.requests - a.requests)
  return {
    requests: order.length,
    clients: traffic.clients.length,
    refusedClients: refusedMost.length,
    ...counts,
    limit,
    windowMs,
    granularityMs,
    edge,
    firstMs: order.length > 0 ? atMs[order[0]!]! : null,
    lastMs: order.length > 0 ? atMs[order.at(-1)!]! : null,
    refusedMost,
    admitted,
  }
}
