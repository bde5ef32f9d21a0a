import type { AlgorithmName, Alignment, Edge, RuleOptions } from 'millrace'
import { type Admissions, admissionsOf, decide } from './decisions.js'
import { type Counts, type JudgedRule, judge, type RefusedClient, type RuleCounts } from './judge.js'
import { algorithmOf, PROMISES } from './promises.js'
import { inOrder, type Traffic } from './traffic.js'

/** A rule and its refusals. */
export interface ReplayedRule extends JudgedRule, RuleCounts {
  readonly algorithm: AlgorithmName
  /** Present for a fixed window. */
  readonly align?: Alignment
  /** Present if it is not the limit. */
  readonly burst?: number
}

/** The result of a replay. */
export interface Replay extends Counts {
  requests: number
  clients: number
  refusedClients: number
  /** One or more, in order. */
  rules: readonly ReplayedRule[]
  /** The edge of all rules. */
  edge: Edge
  /** How full the windows of each rule were. */
  admissions: Admissions
  /** Times of the first and last request in milliseconds since 1970; null without requests. */
  firstMs: number | null
  lastMs: number | null
  /** All clients with refusals, the most refusals first. */
  refusedMost: RefusedClient[]
  /** 1 for each admitted request, in the order of the traffic. */
  admitted: Uint8Array
}

/** Whether the limiter violated a guarantee, which is a bug. */
export function violatesGuarantee(replay: Replay): boolean {
  return admitsTooMany(replay) || (replay.refusedTooEarly > 0 && replay.rules.every(isEarlyByGranularity))
}

/** Whether the limiter admitted more than its algorithm may. The edge `smooth` may admit more than the limit. */
export function admitsTooMany({ rules, edge, wronglyAdmitted, admissions }: Replay): boolean {
  const isExact = rules.every((rule) => mostOf(rule, edge) === rule.limit)
  if (isExact && wronglyAdmitted > 0) return true
  return rules.some((rule, i) => admissions.mostInWindow[i]! > mostOf(rule, edge))
}

const mostOf = ({ algorithm, limit, burst }: ReplayedRule, edge: Edge): number =>
  PROMISES[algorithm].mostInWindow({ limit, edge, burst })

/** Whether the rule promises to refuse no request more than one granularity early. */
export function isEarlyByGranularity({ algorithm }: ReplayedRule): boolean {
  return PROMISES[algorithm].isEarlyByGranularity === true
}

/**
 * Sorts the requests by time and decides each with a limiter whose clock is set to the request's time. Checks
 * every decision against an exact log of the limiter's earlier admissions. The rules have the same edge.
 * @throws MillraceError for an invalid rule
 */
export function replay(
  traffic: Traffic,
  rules: readonly RuleOptions[],
  onProgress: (done: number) => void,
): Replay {
  const order = inOrder(traffic)
  const { atMs } = traffic
  const { refusers, rules: decidedBy } = decide(traffic, order, rules, onProgress)
  const { counts, rules: byRule, refusedMost } = judge(traffic, order, refusers, decidedBy)
  refusedMost.sort((a, b) => b.refused - a.refused || b.requests - a.requests)
  return {
    requests: order.length,
    clients: traffic.clients.length,
    refusedClients: refusedMost.length,
    ...counts,
    rules: decidedBy.map(({ edge, unit, ...rule }, i) => {
      return { ...rule, algorithm: algorithmOf(rule), ...byRule[i]! }
    }),
    edge: decidedBy[0]!.edge,
    firstMs: order.length > 0 ? atMs[order[0]!]! : null,
    lastMs: order.length > 0 ? atMs[order.at(-1)!]! : null,
    admissions: admissionsOf(traffic, order, { refusers, rules: decidedBy }),
    refusedMost,
    admitted: Uint8Array.from(refusers, (by) => (by === 0 ? 1 : 0)),
  }
}
