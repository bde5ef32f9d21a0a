import { createLimiter, type Edge, manualClock, type RuleOptions } from 'millrace'
import { type Counts, judge, type RefusedClient } from './judge.js'
import { inOrder, type Traffic } from './traffic.js'

/** What a limit would have done. */
export interface Replay extends Counts {
  requests: number
  clients: number
  refusedClients: number
  limit: number
  windowMs: number
  granularityMs: number
  edge: Edge
  /** Of the first and last request, since 1970; null where there is none. */
  firstMs: number | null
  lastMs: number | null
  /** Every client that was refused, the most refused first. */
  refusedMost: RefusedClient[]
  /** 1 for each request, in the traffic's order, that was let through. */
  admitted: Uint8Array
}

/** Whether the limiter did what it never may: a bug in it. An edge of `smooth` may admit more than the limit. */
export function breaksPromise({ edge, wronglyAdmitted, refusedTooEarly }: Replay): boolean {
  return refusedTooEarly > 0 || (edge === 'strict' && wronglyAdmitted > 0)
}

/**
 * Puts the requests in order of time and asks a limiter about each, by a clock that stands where the request was. Every
 * answer is judged against an exact log of what this limiter had admitted until then.
 * @throws MillraceError for a rule that can't be
 */
export function replay(traffic: Traffic, rule: RuleOptions, onProgress: (done: number) => void): Replay {
  const order = inOrder(traffic)
  const clock = manualClock(order.length === 0 ? 0 : traffic.atMs[order[0]!]!)
  const maxKeys = Math.max(1_000, 2 * traffic.clients.length) // so sparse that none is displaced: room unused costs none
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
