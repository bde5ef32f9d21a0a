import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'

/** The method by which limiters that decide elsewhere, in a store, make a group of their own. */
export const JOIN = Symbol.for('millrace.join')

/** A limiter with that method. */
export interface Joining {
  /**
   * @param members the limiters by their names, all of which have this method, each once
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for limiters that can't decide together
   */
  [JOIN](members: readonly (readonly [name: string, limiter: Joining])[]): AsyncLimiterGroup
}

export const isJoining = (limiter: unknown): limiter is Joining =>
  typeof limiter === 'object' && limiter !== null && JOIN in limiter
