import { SlidingLog } from './sliding-log.js'
import { byClient, type Traffic } from './traffic.js'

/** Counts over all requests. */
export interface Counts {
  refused: number
  /** Refusals of an exact sliding log on the same traffic. */
  exactRefused: number
  /**
   * Admissions that exceeded the limit by the exact log of the limiter's admissions. Always 0 with the strict
   * edge.
   */
  wronglyAdmitted: number
  /**
   * Refusals that fit the limit by the exact log of the limiter's admissions, because the oldest bucket
   * counts whole.
   */
  wronglyRefused: number
  /** Wrong refusals that were early by more than one bucket. Always 0. */
  refusedTooEarly: number
}

export interface RefusedClient {
  client: string
  requests: number
  refused: number
  /** The client's most requests in any window. */
  peak: number
}

/**
 * Checks every decision against exact logs. `order` has the indices of the requests by time; `admitted` has 1
 * at the index of each admitted request. It goes client by client, so that the memory for logs is that of one
 * client.
 */
export function judge(
  traffic: Traffic,
  order: Uint32Array,
  admitted: Uint8Array,
  { limit, windowMs, granularityMs }: { limit: number; windowMs: number; granularityMs: number },
): { counts: Counts; refusedMost: RefusedClient[] } {
  const { clients, atMs } = traffic
  const { requests, starts } = byClient(traffic, order)
  const admissions = new SlidingLog(windowMs)
  const widerAdmissions = new SlidingLog(windowMs + granularityMs)
  const exact = new SlidingLog(windowMs)
  const requested = new SlidingLog(windowMs)
  const counts = { refused: 0, exactRefused: 0, wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 }
  const refusedMost: RefusedClient[] = []
  for (const [number, client] of clients.entries()) {
    for (const log of [admissions, widerAdmissions, exact, requested]) log.clear()
    const [start, end] = [starts[number]!, starts[number + 1]!]
    const refusedBefore = counts.refused
    let peak = 0
    for (let i = start; i < end; i++) {
      const at = atMs[requests[i]!]!
      const room = admissions.used(at) < limit
      if (admitted[requests[i]!] === 1) {
        if (!room) counts.wronglyAdmitted++
        admissions.add(at)
        widerAdmissions.add(at)
      } else {
        counts.refused++
        if (room) counts.wronglyRefused++
        if (widerAdmissions.used(at) < limit) counts.refusedTooEarly++
      }
      if (exact.used(at) < limit) exact.add(at)
      else counts.exactRefused++
      requested.add(at)
      peak = Math.max(peak, requested.used(at))
    }
    const refused = counts.refused - refusedBefore
    if (refused > 0) refusedMost.push({ client, requests: end - start, refused, peak })
  }
  return { counts, refusedMost }
}
