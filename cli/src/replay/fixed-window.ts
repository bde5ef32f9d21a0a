import { SlidingLog } from './sliding-log.js'
import { byClient, inOrder, type Traffic } from './traffic.js'

/** What a fixed window would have done to the same traffic: a counter for each client, begun anew each window. */
export interface FixedWindow {
  refused: number
  /** The most requests of one client that it would have let through in any window: up to twice the limit. */
  mostInWindow: number
  /** Clients of which it would have let through more than the limit in some window. */
  clientsOver: number
}

/** Windows begin at the multiples of `windowMs` since 1970, so that those of a minute begin with the clock's minute. */
export function fixedWindow(
  traffic: Traffic,
  { limit, windowMs }: { limit: number; windowMs: number },
): FixedWindow {
  const { requests, starts } = byClient(traffic, inOrder(traffic))
  const passed = new SlidingLog(windowMs)
  const found = { refused: 0, mostInWindow: 0, clientsOver: 0 }
  for (const number of traffic.clients.keys()) {
    passed.clear()
    let [window, used, most] = [-1, 0, 0]
    for (let i = starts[number]!; i < starts[number + 1]!; i++) {
      const at = traffic.atMs[requests[i]!]!
      if (Math.floor(at / windowMs) !== window) {
        window = Math.floor(at / windowMs)
        used = 0
      }
      if (used < limit) {
        used++
        passed.add(at)
        most = Math.max(most, passed.used(at))
      } else {
        found.refused++
      }
    }
    if (most > limit) found.clientsOver++
    found.mostInWindow = Math.max(found.mostInWindow, most)
  }
  return found
}
