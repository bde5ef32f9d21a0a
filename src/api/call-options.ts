/** The options and the plain data of a limiter's methods. */

import type { Duration } from '../core/duration.js'
import type { Signal } from '../core/on-abort.js'
import type { Size } from '../core/sizes.js'

export type { LimiterRule } from '../core/limiter-rule.js'

/** The change of a rule, for `update`: at least one of these. */
export interface RuleChange {
  /**
   * The new limit: an integer from 1 to 4,194,302; with the option `unit`, a size of as many units.
   * @default the present limit
   */
  limit?: Size
  /**
   * The new window: from 1 ms to 10,000 years. What a key has used counts in it for one new window, see
   * {@link Limiter.update}.
   * @default the present window
   */
  window?: Duration
  /**
   * The new granularity. The cells of a limiter have room for the buckets that it was created with: a window
   * of more buckets is refused by an error that names the finest granularity.
   * @default as many buckets as the present window has
   */
  granularity?: Duration
}

/** Options of one decision: of {@link Limiter.check} and the methods like it. */
export interface CheckOptions {
  /**
   * A limit for this call only, in place of the rule's: an integer from 1 to 4,194,302, or with the option
   * `unit` a size of as many units. 0 refuses the call, and `Infinity` or `'unlimited'` admits it unless the key is
   * blocked; neither is charged. With several rules, an object with such limits by the names of rules:
   * `{ burst: 20 }`. So one limiter serves plans with different limits. A key has one count in each rule for
   * all limits.
   * @default the limit of the rule
   */
  limit?: Size | 'unlimited' | Readonly<Record<string, Size | 'unlimited'>> | undefined
}

/** Options of {@link Limiter.wait}. */
export interface WaitOptions extends CheckOptions {
  /**
   * Units to charge: an integer of 0 or more.
   * @default 1
   */
  cost?: number | undefined
  /**
   * Ends the wait: the promise rejects with the signal's reason, and nothing stays charged.
   * @default a wait without an end
   */
  signal?: Signal | undefined
}

/** Options of {@link Limiter.usage}. */
export interface UsageOptions {
  /**
   * The name of the rule whose units are counted.
   * @default the first rule
   */
  rule?: string | undefined
}

/** Options of {@link Limiter.checkMany}. */
export interface CheckManyOptions {
  /**
   * Whether to compute `remaining` for each key. It makes the call slower.
   * @default false
   */
  remaining?: boolean | undefined
}

/** Options of one call to an {@link AsyncLimiter}. */
export interface CallOptions {
  /**
   * Ends the call: its promise rejects with `ERR_MILLRACE_ABORTED`. A decision that a worker has already made
   * stays charged; the error's `mayBeCharged` says whether that is possible.
   * @default a call that can't be aborted
   */
  signal?: Signal | undefined
}
