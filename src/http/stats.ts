import type { Limiter, LimiterStats } from '../api/limiter.js'
import type { Decision } from '../core/decision.js'
import {
  DecisionCounts,
  type FigureCounts,
  type Refusal,
  type RuleCounts,
  type WithoutStore,
} from '../core/decision-counts.js'
import type { TopOptions } from '../core/refusals.js'
import { sumOf } from '../core/sum-of.js'
import type { TopKey } from '../core/top-keys.js'

/** What became of requests. */
export interface RequestCounts extends FigureCounts {
  /** Requests that a store has not decided. Those of `closed` are answered by 503, and are not in `refused`. */
  readonly withoutStore: WithoutStore
  /** Of `admitted`: those that waited by the option `delay`, also those over the limit. */
  readonly delayed: number
  /** Of `delayed`: those that are in `shadowRefused`, too. */
  readonly shadowDelayed: number
}

/** What became of the requests of one route, also by rule. `Of` are the stats of what decides. */
export interface RouteStats<Of = LimiterStats> extends RequestCounts, RuleCounts {
  /** The counts of the route's limiter: those of its decisions, its table, its store. Of a group: its decisions. */
  readonly limiter: Of
}

/** What became of the requests of one `rateLimit` or `groupLimit` in this thread. */
export interface RateLimitStats<Of = LimiterStats> extends RequestCounts {
  /** Requests from an address of the option `deny`, answered by 403. They are in no other number. */
  readonly denied: number
  /** Errors while requests were decided: a function of the options threw, a worker was lost, a limiter is closed. */
  readonly failed: number
  /** By the pattern of the route; `default`: the requests without a route of their own. */
  readonly routes: Readonly<Record<string, RouteStats<Of>>>
}

/** What every `rateLimit` can do beside limiting. `Key` and `Of` are those of what decides: a limiter, or a group. */
export interface RateLimitHandles<Key = string, Of = LimiterStats> {
  /** Forgets what a key has used, and ends its ban. Of a group: `{ account: 'alice' }`. */
  reset(key: Key): Promise<void>
  /**
   * Returns what became of the requests of this thread, by route and by rule.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CLOSED`
   */
  stats(): Promise<RateLimitStats<Of>>
  /**
   * Returns the keys of the requests that were refused most, and denied addresses, since the first call: see
   * {@link Limiter.top}.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_OPTION`
   */
  top(options: TopOptions): Promise<TopKey[]>
  /** Closes the limiters that were made from the options. A `limiter` of your own stays open. */
  close(): Promise<void>
}

/** Counts the requests of a route, each when its answer is known. */
export class RouteCounts {
  readonly decisions: DecisionCounts
  #delayed = 0
  #shadowDelayed = 0

  constructor(decisions = new DecisionCounts()) {
    this.decisions = decisions
  }

  /** Counts a request that waits. */
  countDelayed(decision: Decision, as: Refusal): void {
    this.#delayed++
    if (this.decisions.count(decision, as)) this.#shadowDelayed++
  }

  present(): RequestCounts & RuleCounts {
    const { withoutStore } = this.decisions
    const [delayed, shadowDelayed] = [this.#delayed, this.#shadowDelayed]
    return { ...this.decisions.present(), withoutStore, delayed, shadowDelayed }
  }
}

/** The numbers of all routes together. */
export function totalOf(routes: readonly RouteStats[]): RequestCounts {
  const none = { ...new RouteCounts().present(), rules: undefined }
  const { rules: _, ...total } = routes.reduce<RequestCounts & { rules?: unknown }>(
    (sum, { limiter: _, rules: __, ...counts }) => sumOf(sum, counts),
    none,
  )
  return total
}
