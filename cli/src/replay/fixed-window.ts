import { SlidingLog } from './sliding-log.js'
import { byClient, inOrder, type Traffic } from './traffic.js'

/**
 * The result of a fixed window on the same traffic: one counter per client, reset at the start of each
 * window.
 */
export interface FixedWindow {
  refused: number
  /** The most admissions of one client in any window: up to twice the limit. */
  mostInWindow: number
  /** Clients with more admissions than the limit in some window. */
  clientsOver: number
}

/**
 * Windows start at multiples of `windowMs` since 1970, so that a window of a minute starts with the clock's
 * minute.
 */
export function fixedWindow(
  traffic: Traffic,
  { limit, windowMs }: { limit: number; windowMs: number },
): FixedWindow {
  const { requests, starts } = byClient(traffic, inOrder(traffic))
  const admissions = new SlidingLog(windowMs)
  const result = { refused: 0, mostInWindow: 0, clientsOver: 0 }
  for (const number of traffic.clients.keys()) {
    admissions.clear()
    let [window, used, most] = [-1, 0, 0]
    for (let i = starts[number]!; i < starts[number + 1]!; i++) {
      const at = traffic.atMs[requests[i]!]!
      if (Math.floor(at / windowMs) !== window) {
        window = Math.floor(at / windowMs)
        used = 0
      }
      if (used < limit) {
        used++
        admissions.add(at)
        most = Math.max(most, admissions.used(at))
      } else {
        result.refused++
      }
    }
    if (most > limit) result.clientsOver++
    result.mostInWindow = Math.max(result.mostInWindow, most)
  }
  return result
}
