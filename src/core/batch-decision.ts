import type { DecisionSource } from './decision-source.js'

/** The decisions of `checkMany`, by the index of the key. Like a {@link Decision}, it is a snapshot. */
export interface BatchDecision {
  /** The number of keys. */
  readonly length: number
  /** 1 if the key is admitted, else 0. */
  readonly allowed: Uint8Array
  /**
   * What each key had left after its decision. Only with the option `remaining`. A Float64Array if any rule
   * has the option `unit`.
   */
  readonly remaining?: Int32Array | Float64Array
  /**
   * Returns when the key at index `i` can be admitted, like {@link Decision.retryAfterMs}.
   * @param i an index from 0 to `length - 1`
   * @returns whole milliseconds: 0 if allowed, else at least 1; may be `Infinity`
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for another index
   * @example
   * ```ts
   * const batch = await limiter.checkMany(['user:1', 'user:2'])
   * if (batch.allowed[1] === 0) console.log(`user:2 can retry in ${batch.retryAfterMs(1)} ms`)
   * ```
   */
  retryAfterMs(i: number): number
  /**
   * Returns when the key at index `i` can be admitted, like {@link Decision.retryAfterSeconds}.
   * @param i an index from 0 to `length - 1`
   * @returns whole seconds: 0 if allowed, else from 1 to 2,147,483
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for another index
   * @example
   * ```ts
   * const batch = await limiter.checkMany(['user:1', 'user:2'])
   * if (batch.allowed[1] === 0) console.log(`Retry-After: ${batch.retryAfterSeconds(1)}`)
   * ```
   */
  retryAfterSeconds(i: number): number
  /**
   * Returns who decided about the key at index `i`, like {@link Decision.source}. Keys of one batch may differ.
   * @param i an index from 0 to `length - 1`
   * @returns undefined in memory; `'outage'` if the store did not answer: a refusal then says nothing about the key
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for another index
   * @example
   * ```ts
   * const batch = await limiter.checkMany(['user:1', 'user:2'])
   * if (batch.allowed[1] === 0) console.log(batch.source(1) === 'outage' ? 503 : 429)
   * ```
   */
  source(i: number): DecisionSource | undefined
}

/**
 * The costs of a batch: one cost for all keys, or an array with one cost for each key. Integers of 0 or more.
 */
export type Costs = number | ArrayLike<number>
