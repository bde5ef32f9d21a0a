import type { BatchDecision, Costs } from '../core/batch-decision.js'
import type { ConfigStatistics } from '../core/config-statistics.js'
import type { Decision } from '../core/decision.js'
import type { Counts, FigureCounts, RuleCounts } from '../core/decision-counts.js'
import type { Statistics } from '../memory/statistics.js'

/** The counters of a limiter, as `limiter.stats()` returns them. */
export interface EngineStatistics extends Statistics {
  /**
   * `'addon'`: the C++ addon decides single keys and large batches, and TypeScript does the rest. `'none'`:
   * the addon is not loaded, and TypeScript does everything.
   */
  native: 'addon' | 'none'
  /** What this limiter has decided in this thread, also by rule: add these up over threads and processes. */
  own: FigureCounts & RuleCounts
  /**
   * What all threads and processes on the same memory have decided: each of them has the same numbers. They are those of
   * `allowed`, `denied` and `shadowDenied`. Undefined on Redis and Memcached, which count no decisions.
   */
  shared?: Pick<Counts, 'admitted' | 'refused' | 'shadowRefused'>
  /** Pending calls of `wait` of this limiter. */
  waiting: number
  /** Of a pool: decisions and changes of this thread that wait for a worker. Above `maxPending`, calls are refused. */
  pending?: number
  /** Only of a limiter with a configuration store. */
  config?: ConfigStatistics
}

/** The counters that an engine has. */
export type CountedStatistics = Omit<EngineStatistics, 'waiting'>

export const sharedIn = ({ allowed, denied, shadowDenied }: Statistics) => ({
  admitted: allowed,
  refused: denied,
  shadowRefused: shadowDenied,
})

/** Changes of keys other than decisions. With several rules, a change acts on all of them. */
export interface Changes {
  /** Takes up to `most` units out of the key's counts, the oldest first. Returns how many. */
  refund(lo: number, hi: number, most: number): number
  /** Charges `cost` units, also beyond the limit. False: there is no room for the key. */
  penalize(lo: number, hi: number, cost: number): boolean
  /**
   * Charges the units of `actualCost` beyond `cost`, which is charged. `shadowed` has a bit for each rule that
   * charges nothing, because it would have refused `cost`. Returns the units; 0: none, or there is no room.
   */
  chargeMore(lo: number, hi: number, cost: number, actualCost: number, shadowed: number): number
  /** Refuses the key for `ms`, `Infinity` for ever. False: there is no room for the key. */
  block(lo: number, hi: number, ms: number): boolean
  /** Ends the key's block. Returns whether there was one. */
  unblock(lo: number, hi: number): boolean
  /** Forgets the key's counts, and ends its block. */
  clear(lo: number, hi: number): void
  /** Forgets the counts of all keys, and ends their blocks. */
  clearAll(): void
}

/** A decision of an engine on the calling thread. */
export interface OwnDecision extends Decision {
  readonly lo: number
  readonly hi: number
  /** The way of the key by the first rule, or -1: a hint for the next decision on the same key. */
  readonly way: number
}

/** The limit of one call: for one rule a number, for several an array by the index of the rule. */
export type CallLimit = number | readonly (number | undefined)[]

/**
 * Decides on the calling thread: for one rule `InlineEngine`, for several `RulesEngine`. Keys are
 * fingerprints, and the facade has checked all arguments.
 */
export interface Engine<D extends OwnDecision> {
  readonly changes: Changes
  /** Reads the clock, decides and charges. */
  checkNow(lo: number, hi: number, cost: number, hint?: number): D
  /** Reads the clock, decides and charges by a limit of this call. */
  checkWithin(limit: CallLimit, lo: number, hi: number, cost: number, hint?: number): D
  /** Decides, but charges and inserts nothing. */
  peek(lo: number, hi: number, cost: number, limit?: CallLimit): D
  /** Runs a decision for `wait`. Its refusal is not charged, even with `countRefused`. */
  withoutCharge<T>(decide: () => T): T
  /** Decides many keys in order. */
  checkMany(fingerprints: Int32Array, costs: Costs, withRemaining: boolean): BatchDecision
  /** Whether this engine has made the decision. */
  owns(decision: unknown): decision is D
  /** Gives back the charge of a decision or `units` of it, once. Returns how many units. */
  giveBack(decision: D, units?: number): number
  /** Bits of the rules to whose limits the last decision has left its key near. Set it to 0 before the decision. */
  lastNear: number
  /** Takes a decision out of the counts, which this engine or a worker has counted. `near` is its `lastNear`. */
  uncount(decision: Decision, near: number): void
  /** What this engine has counted, by rule. */
  counted(): FigureCounts & RuleCounts
  statistics(): CountedStatistics
  /** Adds the counts of this thread to the shared statistics. */
  flush(): void
  /** Ends the engine: a file may be unmapped now. Decisions can still be read. */
  close(): void
}
