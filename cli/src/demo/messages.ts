import type { SharedLimiter } from 'millrace'

/** The header with the client's number. */
export const CLIENT_HEADER = 'x-client'

/** Where decisions run: on the server's own threads, or on a pool of each. */
export const ENGINES = ['inline', 'pool'] as const
export type Engine = (typeof ENGINES)[number]

export interface ServerTask {
  readonly shared: SharedLimiter
  readonly engine: Engine
  /** 0 selects a free port. */
  readonly port: number
}

export type ServerRequest = 'start' | 'stop'

export type ServerReply =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'failed'; readonly code: string | undefined; readonly message: string }
  | { readonly type: 'started' }
  | ({ readonly type: 'stopped' } & Slice)

/** A thread's record of the time between `start` and `stop`. */
export interface Slice {
  readonly longestPauseMs: number
  /**
   * Per admission: the client's number here, and in `atMs` the time in milliseconds at which the decision
   * took effect.
   */
  readonly clients: Int32Array
  readonly atMs: Float64Array
}
