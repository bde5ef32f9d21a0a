import { SlidingLog } from './sliding-log.js'
import { byClient, inOrder, type Traffic } from './traffic.js'

/**
 * The result of fixed windows on the same traffic: one counter for each client and rule, reset at the start
 * of each window. A request must fit all of them.
 */
export interface FixedWindow {
  refused: number
  /** The most admissions of one client in any window of each rule: up to twice its limit. */
  mostInWindow: readonly number[]
  /** Clients with more admissions than a limit in some window. */
  clientsOver: number
}

interface FixedRule {
  readonly limit: number
  readonly windowMs: number
}

/**
 * Windows start at multiples of `windowMs` since 1970, so that a window of a minute starts with the clock's
 * minute.
 */
export function fixedWindow(traffic: Traffic, rules: readonly FixedRule[]): FixedWindow {
  const { requests, starts } = byClient(traffic, inOrder(traffic))
  const counters = rules.map((rule) => new Counter(rule))
  let refused = 0
  let clientsOver = 0
  const mostInWindow = rules.map(() => 0)
  for (const number of traffic.clients.keys()) {
    for (const counter of counters) counter.clear()
    for (let i = starts[number]!; i < starts[number + 1]!; i++) {
      const at = traffic.atMs[requests[i]!]!
      if (counters.every((counter) => counter.hasRoom(at))) for (const counter of counters) counter.admit(at)
      else refused++
    }
    if (counters.some(({ most, limit }) => most > limit)) clientsOver++
    for (const [rule, { most }] of counters.entries())
      mostInWindow[rule] = Math.max(mostInWindow[rule]!, most)
  }
  return { refused, mostInWindow, clientsOver }
}

/** The counter of one client by one rule. */
class Counter {
  readonly limit: number
  /** The most admissions in any window. */
  most = 0
  readonly #windowMs: number
  readonly #admissions: SlidingLog
  #window = -1
  #used = 0

  constructor({ limit, windowMs }: FixedRule) {
    this.limit = limit
    this.#windowMs = windowMs
    this.#admissions = new SlidingLog(windowMs)
  }

  clear(): void {
    this.#admissions.clear()
    this.most = 0
    this.#window = -1
  }

  hasRoom(atMs: number): boolean {
    const window = Math.floor(atMs / this.#windowMs)
    if (window !== this.#window) this.#used = 0
    this.#window = window
    return this.#used < this.limit
  }

  admit(atMs: number): void {
    this.#used++
    this.#admissions.add(atMs)
    this.most = Math.max(this.most, this.#admissions.used(atMs))
  }
}
