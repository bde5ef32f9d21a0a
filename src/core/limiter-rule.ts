import type { AlgorithmName } from './algorithms.js'
import type { Alignment, Edge, Period } from './rule-algorithms.js'

/** The rule of a limiter, as `limiter.rule` returns it. */
export interface LimiterRule {
  /** The name of the rule. Default: `'default'`. */
  readonly name: string
  /** Units that a key may use in any window. With `unit`: a quantity, in whole units. `update` changes it. */
  readonly limit: number
  /** The length of the window, in milliseconds. With `align: 'calendar'`: of the longest one, with days of 24 hours. */
  readonly windowMs: number
  /** The smallest time that the rule distinguishes, in milliseconds. A sliding window has buckets of that length. */
  readonly granularityMs: number
  /** How the limiter counts the oldest bucket, which lies only partly inside the window. */
  readonly edge: Edge
  /** The option `algorithm` of the rule, if it is not `'sliding-window'`. */
  readonly algorithm?: AlgorithmName
  /** The option `align` of a fixed window. */
  readonly align?: Alignment
  /** The option `period` of a rule with `align: 'calendar'`. */
  readonly period?: Period
  /** The option `timeZone` of a rule with `align: 'calendar'`. */
  readonly timeZone?: string
  /** What a key may use at once, if that is not the limit. */
  readonly burst?: number
  /** The largest limit that a sliding log may get. */
  readonly maxLimit?: number
  /** The option `unit` of the rule, if it has one. */
  readonly unit?: number
  /** Whether the rule charges what it refuses: the option `countRefused`. */
  readonly countRefused?: true
  /** Whether the rule refuses nothing, and says what it would have refused: the option `shadow`. */
  readonly shadow?: true
}
