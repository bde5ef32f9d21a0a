import { createLimiter, manualClock } from 'millrace'
import { SlidingLog } from 'millrace-cli/dist/replay/sliding-log.js'
import { byClient, inOrder, type Traffic } from 'millrace-cli/dist/replay/traffic.js'
import { type Limited, mostInWindow, type Variant } from './variants.js'

/** 1 for each admitted request, in the order of the traffic. */
export type Admitted = Uint8Array

/** Shares in percent. */
export interface Accuracy {
  /** Refused, of the requests that the exact log admits. */
  readonly wronglyRefused: number
  /** Admitted although the window had no room, of the algorithm's admissions. */
  readonly wronglyAdmitted: number
  /** The most admissions in any window, above the limit, of the limit. */
  readonly excess: number
  /** Admissions, of those of the exact log. */
  readonly admitted: number
}

/**
 * The exact log: a request is admitted if fewer than `limit` admitted ones of its client lie in the window that
 * ends with it.
 */
export function exactly(traffic: Traffic, { limit, windowMs }: Limited): Admitted {
  const admitted = new Uint8Array(traffic.atMs.length)
  const log = new SlidingLog(windowMs)
  eachClient(traffic, (requests) => {
    log.clear()
    for (const request of requests) {
      const atMs = traffic.atMs[request]!
      if (log.used(atMs) >= limit) continue
      log.add(atMs)
      admitted[request] = 1
    }
  })
  return admitted
}

/** What an algorithm admits, with its clock set to the time of each request. */
export function admittedBy(variant: Variant, traffic: Traffic, rule: Limited): Admitted {
  const { clients, client, atMs } = traffic
  const order = inOrder(traffic)
  const clock = manualClock(order.length === 0 ? 0 : atMs[order[0]!]!)
  const limiter = createLimiter({
    ...{ limit: rule.limit, window: rule.windowMs, algorithm: variant.algorithm },
    ...variant.options?.(rule),
    ...{ clock, maxKeys: Math.max(1_000, 2 * clients.length) }, // so many that no key is evicted
  })
  const admitted = new Uint8Array(atMs.length)
  for (const request of order) {
    clock.set(atMs[request]!)
    if (limiter.check(clients[client[request]!]!).allowed) admitted[request] = 1
  }
  void limiter.close()
  return admitted
}

/** Compares admissions with those of the exact log, and each window of them with the limit. */
export function compare(traffic: Traffic, rule: Limited, admitted: Admitted, exact: Admitted): Accuracy {
  const { most, overLimit } = windowsOf(traffic, rule, admitted)
  const exactCount = countOf(exact)
  const refused = exact.filter((isAdmitted, request) => isAdmitted > admitted[request]!).length
  return {
    wronglyRefused: percent(refused, exactCount),
    wronglyAdmitted: percent(overLimit, countOf(admitted)),
    excess: percent(Math.max(0, most - rule.limit), rule.limit),
    admitted: percent(countOf(admitted), exactCount),
  }
}

/** The figures of an algorithm. @throws Error if it admitted more than it may in some window */
export function accuracyOf(variant: Variant, traffic: Traffic, rule: Limited, exact: Admitted): Accuracy {
  const admitted = admittedBy(variant, traffic, rule)
  checkMost(variant, rule, windowsOf(traffic, rule, admitted).most)
  return compare(traffic, rule, admitted, exact)
}

/** @throws Error if an algorithm may not admit so many in a window */
export function checkMost(variant: Variant, rule: Limited, most: number): void {
  const bound = mostInWindow(variant, rule)
  if (most > bound) throw new Error(`${variant.name} admitted ${most} in a window. It may admit ${bound}`)
}

/** The most admissions of a client in any window, and how many were beyond the limit. */
function windowsOf(traffic: Traffic, { limit, windowMs }: Limited, admitted: Admitted) {
  const log = new SlidingLog(windowMs)
  let most = 0
  let overLimit = 0
  eachClient(traffic, (requests) => {
    log.clear()
    for (const request of requests) {
      if (admitted[request] === 0) continue
      const atMs = traffic.atMs[request]!
      log.add(atMs)
      const used = log.used(atMs)
      most = Math.max(most, used)
      if (used > limit) overLimit++
    }
  })
  return { most, overLimit }
}

/** Calls `visit` with the requests of each client, by time. */
function eachClient(traffic: Traffic, visit: (requests: Uint32Array) => void): void {
  const { requests, starts } = byClient(traffic, inOrder(traffic))
  for (const number of traffic.clients.keys()) visit(requests.subarray(starts[number], starts[number + 1]))
}

const countOf = (admitted: Admitted): number => admitted.reduce((sum, one) => sum + one, 0)
const percent = (part: number, whole: number): number => (whole === 0 ? 0 : (100 * part) / whole)
