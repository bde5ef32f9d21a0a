import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import type { RuleDecision } from '../core/decision.js'
import type { DecisionSource } from '../core/decision-source.js'

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

/** What each request was told. `allowed`: all of them are charged, else none is. */
export interface TogetherDecision {
  readonly allowed: boolean
  readonly source: DecisionSource | undefined
  readonly parts: readonly RuleDecision[]
}

/** Decides for one list of limiters, in a store that has all of their counts. */
export interface TogetherDecider {
  decide(
    keys: readonly string[],
    costs: readonly number[],
    limits: readonly number[],
  ): Promise<TogetherDecision>
}

/** The method by which limiters in a store make a decider of their own. */
export const TOGETHER = Symbol.for('millrace.together')
