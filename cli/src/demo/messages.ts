import type { SharedLimiter } from 'millrace'

/** Bears the number of the client. */
export const CLIENT_HEADER = 'x-client'

/** Who decides: the server's own threads, or a pool beside each of them. */
export const ENGINES = ['inline', 'pool'] as const
export type Engine = (typeof ENGINES)[number]

export interface ServerTask {
  readonly shared: SharedLimiter
  readonly engine: Engine
  /** 0: any free one. */
  readonly port: number
}

export type ServerRequest = 'start' | 'stop'

export type ServerReply =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'failed'; readonly code: string | undefined; readonly message: string }
  | { readonly type: 'started' }
  | ({ readonly type: 'stopped' } & Slice)

/** What a thread saw between `start` and `stop`. */
export interface Slice {
  readonly longestPauseMs: number
  /** For each admission its client's number, and the moment at which the decision took effect, in milliseconds. */
  readonly clients: Int32Array
  readonly atMs: Float64Array
}
