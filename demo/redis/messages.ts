import type { OnOutage } from 'millrace/redis'

/** What a process of the demo is told at its start. */
export interface NodeTask {
  /** The port of Redis. */
  readonly port: number
  readonly prefix: string
  readonly limit: number
  readonly windowMs: number
  readonly granularityMs: number
  readonly onOutage: OnOutage
  /** The number of processes. */
  readonly nodes: number
  readonly requestsPerSecond: number
}

/** `resumed`: Redis goes on after a stop. */
export type NodeOrder = 'load' | 'resumed' | 'stop'

export type NodeReport =
  | { readonly type: 'ready' }
  /** Redis has decided again. */
  | { readonly type: 'back' }
  | { readonly type: 'stopped'; readonly log: NodeLog }

/** What a process has seen. Times are in milliseconds since 1970. */
export interface NodeLog {
  readonly requests: number
  /** Refusals because the limit was used up. */
  readonly overLimit: number
  /** Refusals because Redis did not answer. */
  readonly withoutAnswer: number
  /** When Redis admitted each request, by its own clock. */
  readonly byRedisMs: Float64Array
  /** When this process admitted each request by its share of the limit. */
  readonly byShareMs: Float64Array
  /** Admissions by Redis at a time that is not between request and reply. */
  readonly contradictions: number
}
