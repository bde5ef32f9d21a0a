import { createLimiter, type Decision, type LimiterRule, manualClock, type RuleOptions } from 'millrace'
import { SlidingLog } from './sliding-log.js'
import { byClient, type Traffic } from './traffic.js'

/** The decisions of a limiter. */
export interface Decisions {
  /** A bit for each rule that refused the request, the first rule in the lowest bit; 0 is an admission. */
  readonly refusers: Uint16Array
  /** The rules as the limiter has them. */
  readonly rules: readonly LimiterRule[]
}

/**
 * Decides each request, in this order, with a limiter whose clock is set to the request's time.
 * @throws MillraceError for an invalid rule
 */
export function decide(
  traffic: Traffic,
  order: Uint32Array,
  rules: readonly RuleOptions[],
  onProgress: (done: number) => void,
): Decisions {
  const { atMs, client, clients } = traffic
  const clock = manualClock(order.length === 0 ? 0 : atMs[order[0]!]!)
  const maxKeys = Math.max(1_000, 2 * clients.length) // large enough that no key is evicted; unused room takes no memory
  const limiter = createLimiter({ rules, maxKeys, clock })
  const decidedBy = limiter.rules
  const refusers = new Uint16Array(order.length)
  for (let i = 0; i < order.length; i++) {
    const request = order[i]!
    clock.set(atMs[request]!)
    const decision = limiter.check(clients[client[request]!]!)
    if (!decision.allowed) refusers[request] = refusersOf(decision)
    if (i % 4096 === 0) onProgress(i)
  }
  void limiter.close()
  return { refusers, rules: decidedBy }
}

/** A limiter has at most 16 rules. */
function refusersOf({ rules }: Decision): number {
  return rules.reduce((bits, { allowed }, i) => (allowed ? bits : bits | (1 << i)), 0)
}

/** What was admitted, and how full the windows were. */
export interface Admissions {
  refused: number
  /** The most admissions of one client in any window of each rule. */
  mostInWindow: readonly number[]
  /** Clients with more admissions than a limit in some window. */
  clientsOver: number
}

/** Counts the admissions in every window of each client. `order` has the requests by time. */
export function admissionsOf(
  traffic: Traffic,
  order: Uint32Array,
  { refusers, rules }: { readonly refusers: Uint16Array; readonly rules: readonly WindowOf[] },
): Admissions {
  const { requests, starts } = byClient(traffic, order)
  const logs = rules.map(({ windowMs }) => new SlidingLog(windowMs))
  const mostInWindow = rules.map(() => 0)
  let refused = 0
  let clientsOver = 0
  for (const number of traffic.clients.keys()) {
    for (const log of logs) log.clear()
    let isOver = false
    for (let i = starts[number]!; i < starts[number + 1]!; i++) {
      const request = requests[i]!
      if (refusers[request] !== 0) {
        refused++
        continue
      }
      const atMs = traffic.atMs[request]!
      for (const [rule, log] of logs.entries()) {
        log.add(atMs)
        const used = log.used(atMs)
        mostInWindow[rule] = Math.max(mostInWindow[rule]!, used)
        if (used > rules[rule]!.limit) isOver = true
      }
    }
    if (isOver) clientsOver++
  }
  return { refused, mostInWindow, clientsOver }
}

interface WindowOf {
  readonly limit: number
  readonly windowMs: number
}
