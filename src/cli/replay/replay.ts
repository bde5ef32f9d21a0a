import { manualClock } from '../../core/clock.js'
import type { Edge, RuleOptions } from '../../core/rule.js'
import { createLimiter } from '../../create.js'
import { SlidingLog } from './sliding-log.js'

/** Requests as they came: for each its moment in milliseconds, and the number of its client. */
export interface Traffic {
  readonly clients: readonly string[]
  readonly atMs: readonly number[]
  readonly client: readonly number[]
}

export interface ReplayedClient {
  client: string
  requests: number
  refused: number
  /** The most that it asked for in any one window. */
  peak: number
}

/** What a limit would have done. */
export interface Replay {
  requests: number
  clients: number
  refused: number
  refusedClients: number
  /** What an exact sliding log, deciding on its own, would have refused. */
  exactRefused: number
  /** Admissions that put the log of the limiter's own admissions over the limit. Strict: never. */
  wronglyAdmitted: number
  /** Refusals although the log of the limiter's own admissions had room: up to one granule early. */
  wronglyRefused: number
  /** Of those, the ones more than one granule early. Never. */
  refusedTooEarly: number
  limit: number
  windowMs: number
  granularityMs: number
  edge: Edge
  /** Of the first and last request, since 1970; null where there is none. */
  firstMs: number | null
  lastMs: number | null
  /** Every client that was refused, the most refused first. */
  refusedMost: ReplayedClient[]
}

/** Whether the limiter did what it never may: a bug in it. An edge of `smooth` may admit more than the limit. */
export function breaksPromise({ edge, wronglyAdmitted, refusedTooEarly }: Replay): boolean {
  return refusedTooEarly > 0 || (edge === 'strict' && wronglyAdmitted > 0)
}

/** One client's logs. */
class Client {
  readonly admitted: SlidingLog
  readonly admittedWider: SlidingLog
  readonly exact: SlidingLog
  readonly asked: SlidingLog
  requests = 0
  refused = 0
  peak = 0

  constructor(windowMs: number, granularityMs: number) {
    this.admitted = new SlidingLog(windowMs)
    this.admittedWider = new SlidingLog(windowMs + granularityMs)
    this.exact = new SlidingLog(windowMs)
    this.asked = new SlidingLog(windowMs)
  }
}

/**
 * Puts the requests in order of time and asks a limiter about each, by a clock that stands where the request was. Every
 * answer is judged against an exact log of what this limiter had admitted until then.
 * @throws MillraceError for a rule that can't be
 */
export function replay(traffic: Traffic, rule: RuleOptions, onProgress: (done: number) => void): Replay {
  const clock = manualClock()
  const maxKeys = Math.max(1_000, 2 * traffic.clients.length) // so sparse that none is displaced: room unused costs none
  const limiter = createLimiter({ ...rule, maxKeys, clock })
  const { windowMs, granularityMs, edge } = limiter.rule
  const { limit } = rule
  const clients = traffic.clients.map(() => new Client(windowMs, granularityMs))
  const handles = traffic.clients.map((client) => limiter.handle(client))
  const order = Uint32Array.from(traffic.atMs, (_, i) => i).sort(
    (a, b) => traffic.atMs[a]! - traffic.atMs[b]! || a - b,
  )

  const counts = { refused: 0, exactRefused: 0, wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 }
  for (let i = 0; i < order.length; i++) {
    const atMs = traffic.atMs[order[i]!]!
    const number = traffic.client[order[i]!]!
    const client = clients[number]!
    clock.set(atMs)
    const { allowed } = limiter.check(handles[number]!)
    const room = client.admitted.used(atMs) < limit
    if (allowed) {
      if (!room) counts.wronglyAdmitted++
      client.admitted.add(atMs)
      client.admittedWider.add(atMs)
    } else {
      counts.refused++
      client.refused++
      if (room) counts.wronglyRefused++
      if (client.admittedWider.used(atMs) < limit) counts.refusedTooEarly++
    }
    if (client.exact.used(atMs) < limit) client.exact.add(atMs)
    else counts.exactRefused++
    client.requests++
    client.asked.add(atMs)
    client.peak = Math.max(client.peak, client.asked.used(atMs))
    if (i % 4096 === 0) onProgress(i)
  }
  void limiter.close()

  const refusedMost = clients
    .map(({ requests, refused, peak }, i) => ({ client: traffic.clients[i]!, requests, refused, peak }))
    .filter(({ refused }) => refused > 0)
    .sort((a, b) => b.refused - a.refused || b.requests - a.requests)
  return {
    requests: order.length,
    clients: clients.length,
    refusedClients: refusedMost.length,
    ...counts,
    limit,
    windowMs,
    granularityMs,
    edge,
    firstMs: order.length > 0 ? traffic.atMs[order[0]!]! : null,
    lastMs: order.length > 0 ? traffic.atMs[order.at(-1)!]! : null,
    refusedMost,
  }
}
