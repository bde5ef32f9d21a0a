import { SlidingLog } from './sliding-log.js'
import { byClient, type Traffic } from './traffic.js'

/** Counts over all requests. */
export interface Counts {
  refused: number
  /** Refusals of an exact sliding log on the same traffic. */
  exactRefused: number
  /**
   * Admissions that exceeded the limit by the exact log of the limiter's admissions. Always 0 with a sliding
   * window and the strict edge.
   */
  wronglyAdmitted: number
  /**
   * Refusals that fit the limit by the exact log of the limiter's admissions. A sliding window refuses them
   * because the oldest bucket counts whole.
   */
  wronglyRefused: number
  /** Wrong refusals that were early by more than one bucket. Always 0 with a sliding window. */
  refusedTooEarly: number
}

/** A rule as the limiter decided by it. */
export interface JudgedRule {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly granularityMs: number
}

/** The refusals of one rule. */
export interface RuleCounts {
  /** Requests that it refused, alone or together with others. */
  refused: number
  /** Requests that no other rule refused. */
  refusedAlone: number
  /** Clients with a request that it refused. */
  refusedClients: number
}

export interface RefusedClient {
  client: string
  requests: number
  refused: number
  /** Requests that each rule refused, in the order of the rules. */
  refusedBy: readonly number[]
  /** The client's most requests in any window of each rule. */
  peaks: readonly number[]
}

/**
 * Checks every decision against exact logs. `order` has the indices of the requests by time. `refusers` has a
 * bit set for each rule that refused the request, the first rule in the lowest bit; 0 is an admission. It
 * goes client by client, so that the memory for logs is that of one client.
 */
export function judge(
  traffic: Traffic,
  order: Uint32Array,
  refusers: Uint16Array,
  rules: readonly JudgedRule[],
): { counts: Counts; rules: RuleCounts[]; refusedMost: RefusedClient[] } {
  const { clients, atMs } = traffic
  const { requests, starts } = byClient(traffic, order)
  const logs = rules.map((rule) => new RuleLogs(rule))
  const counts = { refused: 0, exactRefused: 0, wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 }
  const byRule = rules.map(() => ({ refused: 0, refusedAlone: 0, refusedClients: 0 }))
  const refusedMost: RefusedClient[] = []
  for (const [number, client] of clients.entries()) {
    for (const log of logs) log.clear()
    const [start, end] = [starts[number]!, starts[number + 1]!]
    const refusedBy = rules.map(() => 0)
    const refusedBefore = counts.refused
    for (let i = start; i < end; i++) {
      const at = atMs[requests[i]!]!
      const by = refusers[requests[i]!]!
      const room = logs.every((log) => log.hasRoom(at))
      if (by === 0) {
        if (!room) counts.wronglyAdmitted++
        for (const log of logs) log.admit(at)
      } else {
        counts.refused++
        if (room) counts.wronglyRefused++
        if (logs.every((log) => log.hasRoomInWider(at))) counts.refusedTooEarly++
        for (let rule = 0; rule < rules.length; rule++) {
          if ((by & (1 << rule)) === 0) continue
          refusedBy[rule]!++
          if (by === 1 << rule) byRule[rule]!.refusedAlone++
        }
      }
      if (logs.every(({ limit, exact }) => exact.used(at) < limit))
        for (const { exact } of logs) exact.add(at)
      else counts.exactRefused++
      for (const log of logs) log.request(at)
    }
    const refused = counts.refused - refusedBefore
    if (refused === 0) continue
    for (const [rule, count] of refusedBy.entries()) {
      byRule[rule]!.refused += count
      if (count > 0) byRule[rule]!.refusedClients++
    }
    const peaks = logs.map(({ peak }) => peak)
    refusedMost.push({ client, requests: end - start, refused, refusedBy, peaks })
  }
  return { counts, rules: byRule, refusedMost }
}

/** The exact logs of one client by one rule. */
class RuleLogs {
  readonly limit: number
  /** The requests that an exact log of the same rules admits. */
  readonly exact: SlidingLog
  /** The most requests in any window. */
  peak = 0
  readonly #admitted: SlidingLog
  readonly #admittedInWider: SlidingLog
  readonly #requested: SlidingLog

  constructor({ limit, windowMs, granularityMs }: JudgedRule) {
    this.limit = limit
    this.exact = new SlidingLog(windowMs)
    this.#admitted = new SlidingLog(windowMs)
    this.#admittedInWider = new SlidingLog(windowMs + granularityMs)
    this.#requested = new SlidingLog(windowMs)
  }

  clear(): void {
    for (const log of [this.exact, this.#admitted, this.#admittedInWider, this.#requested]) log.clear()
    this.peak = 0
  }

  hasRoom(atMs: number): boolean {
    return this.#admitted.used(atMs) < this.limit
  }

  /** Whether a window that is one granularity longer has room, too. */
  hasRoomInWider(atMs: number): boolean {
    return this.#admittedInWider.used(atMs) < this.limit
  }

  admit(atMs: number): void {
    this.#admitted.add(atMs)
    this.#admittedInWider.add(atMs)
  }

  request(atMs: number): void {
    this.#requested.add(atMs)
    this.peak = Math.max(this.peak, this.#requested.used(atMs))
  }
}
