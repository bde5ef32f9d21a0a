import type { LimiterStats } from '../api/limiter.js'
import type { GroupStats } from '../api/limiter-group.js'
import type { LatencyCounts } from '../core/latency.js'
import type { OutgoingStats } from '../fetch/outgoing.js'
import type { RateLimitStats } from '../http/stats.js'
import type { RedisStats } from '../remote/remote-statistics.js'

/** What has counts: a limiter, a group, a `rateLimit`, a `limitedFetch`, or an object with the same method. */
export interface Counting {
  stats(): object | Promise<object>
}

/** The stats of any of them. */
export type AnyStats = Partial<
  Omit<LimiterStats, 'own'> &
    Pick<RedisStats, 'withoutStore' | 'outages' | 'inOutage' | 'store'> &
    Pick<OutgoingStats, 'admitted' | 'waited' | 'refused' | 'blocked' | 'pauses'> &
    Pick<RateLimitStats, 'denied' | 'failed' | 'routes'> & {
      own: Partial<LimiterStats['own'] & GroupStats['own']>
    }
>

export type Labels = Readonly<Record<string, string>>

/** What one reading has found. */
export interface Seen {
  /** `limiter`: its name; of the limiter of a route, its `route`, too. */
  readonly who: Labels
  readonly stats: AnyStats
  /** How long the calls of its stores took. */
  readonly durations?: ReadonlyMap<string, LatencyCounts>
  /** How long a decision takes, if this thread decides. */
  readonly decisionSeconds?: number | undefined
  /** How many readings have failed. */
  readonly errors?: number
}
