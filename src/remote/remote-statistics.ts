import type { LimiterStats } from '../api/limiter.js'
import {
  DecisionCounts,
  type FigureCounts,
  type RuleCounts,
  type WithoutStore,
} from '../core/decision-counts.js'
import { type Latency, LatencyCounts } from '../core/latency.js'
import { NO_TABLE } from '../core/no-table.js'
import { messageOf } from './last-error.js'
import type { Outage } from './outage.js'
import type { OutageWatch } from './outage-watch.js'
import type { LeaseStats, StoreCounters } from './remote-store.js'

/** The state of one shard, as this process sees it. */
export interface ShardStats {
  name: string
  /** `'open'`: the server has not answered, and calls are decided without it until it does. */
  breaker: 'closed' | 'open'
  /** Whether it is no longer in the list, and is charged until the change is over. */
  leaving: boolean
  /** Keys that the server had lost, and of which this process has sent its charges again. */
  restored: number
}

/** The counters of one process's limiter on Redis. What only a table in memory has is 0. */
export interface RedisStats extends LimiterStats {
  /** Decisions that this process made by its share of the limit, because Redis did not answer: `withoutStore.local`. */
  local: number
  /** What this process has decided, also by rule. The other processes on the store count for themselves. */
  own: FigureCounts & RuleCounts
  /** Decisions that were made without the store. */
  withoutStore: WithoutStore
  /** How long calls that decide took, from sending to answer. Those without an answer are in `outages` only. */
  latency: Latency
  /** The name of the store: `'redis'`, `'memcached'`, or the option `source` of a backend. */
  store: string
  /** Whether the store does not answer at present. */
  inOutage: boolean
  /** Calls that Redis did not answer in time, or that were not sent because it had not answered before. */
  outages: number
  /**
   * Keys that Redis had lost (by a restart without its data, a flush, an eviction or a failover), and of which this
   * process has sent its own charges again.
   */
  restored: number
  /**
   * With `optimistic: true` on Redis, `strict: true` on Memcached, and on backends of your own: decisions that were made
   * again, because another process had changed the key meanwhile. Otherwise 0.
   */
  retries: number
  /**
   * With `strict: true` on Memcached and on backends of your own: calls that were given up after 64 of those. Requests
   * were refused, other calls rejected. Otherwise 0.
   */
  contended: number
  /**
   * The last reason for which Redis did not answer: an error of the connection while there is none, such as `connect
   * ECONNREFUSED 127.0.0.1:6379` or `WRONGPASS ...`; an error that it answered, such as `OOM ...`; or that the deadline
   * passed.
   */
  lastFailure: string | undefined
  /** With `mode: 'leased'` on Redis: what this process has had on lease. */
  leases?: LeaseStats
  /** The shards, for a limiter that has them. */
  shards?: ShardStats[]
}

/** Counts the decisions of this process. */
export class RedisStatistics {
  readonly decisions: DecisionCounts
  readonly latency = new LatencyCounts()
  readonly #watch: OutageWatch
  #outages = 0
  #lastFailure: string | undefined

  constructor(watch: OutageWatch, nearLimit: number | undefined) {
    this.#watch = watch
    this.decisions = new DecisionCounts(nearLimit)
  }

  noteOutage({ cause }: Outage): void {
    this.#outages++
    if (cause !== undefined) this.#lastFailure = messageOf(cause)
  }

  /** @param waiting pending calls of `wait` */
  present({ restored, retries = 0, contended = 0, leases }: StoreCounters, waiting: number): RedisStats {
    const { withoutStore } = this.decisions
    const own = this.decisions.present()
    return {
      ...NO_TABLE,
      allowed: own.admitted,
      denied: own.refused,
      shadowDenied: own.shadowRefused,
      own,
      waiting,
      local: withoutStore.local,
      withoutStore,
      latency: this.latency.present(),
      store: this.#watch.store,
      inOutage: this.#watch.isOn,
      outages: this.#outages,
      restored,
      retries,
      contended,
      ...(leases && { leases }),
      lastFailure: this.#lastFailure,
    }
  }
}
