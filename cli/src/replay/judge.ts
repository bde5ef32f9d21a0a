import { SlidingLog } from './sliding-log.js'
import { byClient, type Traffic } from './traffic.js'

/** What became of all requests together. */
export interface Counts {
  refused: number
  /** What an exact sliding log, deciding on its own, would have refused. */
  exactRefused: number
  /** Admissions that put the log of the limiter's own admissions over the limit. Strict: never. */
  wronglyAdmitted: number
  /** Refusals although the log of the limiter's own admissions had room: up to one granule early. */
  wronglyRefused: number
  /** Of those, the ones more than one granule early. Never. */
  refusedTooEarly: number
}

export interface RefusedClient {
  client: string
  requests: number
  refused: number
  /** The most that it asked for in any one window. */
  peak: number
}

/**
 * Judges every decision by exact logs. `order` has the numbers of the requests in order of time; `admitted` has 1 for
 * each request (by its number) that the limiter let pass. One client after the other, so that a million clients need no
 * more memory than the logs of one.
 */
export function judge(
  traffic: Traffic,
  order: Uint32Array,
  admitted: Uint8Array,
  { limit, windowMs, granularityMs }: { limit: number; windowMs: number; granularityMs: number },
): { counts: Counts; refusedMost: RefusedClient[] } {
  const { clients, atMs } = traffic
  const { requests, starts } = byClient(traffic, order)
  const own = new SlidingLog(windowMs)
  const ownWider = new SlidingLog(windowMs + granularityMs)
  const exact = new SlidingLog(windowMs)
  const asked = new SlidingLog(windowMs)
  const counts = { refused: 0, exactRefused: 0, wronglyAdmitted: 0, wronglyRefused: 0, refusedTooEarly: 0 }
  const refusedMost: RefusedClient[] = []
  for (const [number, client] of clients.entries()) {
    for (const log of [own, ownWider, exact, asked]) log.clear()
    const [start, end] = [starts[number]!, starts[number + 1]!]
    const refusedBefore = counts.refused
    let peak = 0
    for (let i = start; i < end; i++) {
      const at = atMs[requests[i]!]!
      const room = own.used(at) < limit
      if (admitted[requests[i]!] === 1) {
        if (!room) counts.wronglyAdmitted++
        own.add(at)
        ownWider.add(at)
      } else {
        counts.refused++
        if (room) counts.wronglyRefused++
        if (ownWider.used(at) < limit) counts.refusedTooEarly++
      }
      if (exact.used(at) < limit) exact.add(at)
      else counts.exactRefused++
      asked.add(at)
      peak = Math.max(peak, asked.used(at))
    }
    const refused = counts.refused - refusedBefore
    if (refused > 0) refusedMost.push({ client, requests: end - start, refused, peak })
  }
  return { counts, refusedMost }
}
