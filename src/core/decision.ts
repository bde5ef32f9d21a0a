import type { DecisionSource } from './decision-source.js'
import type { ShadowDecision } from './verdict.js'

export type { ShadowDecision } from './verdict.js'

/**
 * The result of one request to a limiter: a snapshot.
 *
 * `remaining`, `retryAfterMs` and `resetMs` are as of the decision. They are exact if the key has not changed
 * since. Otherwise `remaining` is never more, and `retryAfterMs` and `resetMs` are never earlier, than was
 * true then. A value that has been read once does not change. (In a table of more than 1,024 places, tens of
 * thousands of new or refunded keys in between may count as a change: see "A decision read late" in
 * `docs/explanation/guarantees.md`.)
 */
export interface Decision {
  /** Whether the request is admitted. */
  readonly allowed: boolean
  /** The limit of `rule` at the decision. `Infinity` if the call or the policy of the key had no limit. */
  readonly limit: number
  /** Units left in the window of `rule` after this decision, 0 to `limit`. */
  readonly remaining: number
  /**
   * Whole milliseconds from the decision until all rules would admit the same request, if nothing else is
   * charged before: 0 if allowed, else at least 1. `Infinity` for a cost above a limit, and for a key that is
   * blocked for ever. For headers use `retryAfterSeconds`.
   */
  readonly retryAfterMs: number
  /**
   * For a `Retry-After` header: `retryAfterMs` in seconds, rounded up. 0 if allowed. Otherwise a whole number
   * from 1 to 2,147,483, even if `retryAfterMs` is `Infinity`.
   */
  readonly retryAfterSeconds: number
  /**
   * Whole milliseconds from the decision until the whole limit of `rule` is available: until nothing counts
   * and a block of the key has ended. `Infinity` for a key blocked for ever.
   */
  readonly resetMs: number
  /**
   * The name of the rule that decided. With several rules: of a refusal, the first rule that refused, or the
   * first with a limit below the cost; of an admission, the rule with the smallest part of its limit left.
   */
  readonly rule: string
  /** What the rules with the option `shadow` would have decided; undefined without such a rule. */
  readonly shadow?: ShadowDecision | undefined
  /** Who decided. Only decisions of a limiter on Redis or Memcached have it. */
  readonly source?: DecisionSource | undefined
  /** What each rule decided, in the order of the rules. */
  readonly rules: readonly RuleDecision[]
  /**
   * Returns all fields as plain data, for `JSON.stringify`, `structuredClone` and `postMessage`. With one
   * rule, `rules` is left out. `Infinity` becomes `Number.MAX_SAFE_INTEGER`, because JSON would write `null`,
   * which counts as 0.
   * @returns a new object
   * @example
   * ```ts
   * console.log(JSON.stringify(await limiter.check('user:42')))
   * ```
   */
  toJSON(): DecisionFields
}

/**
 * The part of one rule in a {@link Decision}. If another rule refused, this one charged nothing. `allowed`
 * then says whether this rule alone would have admitted the request, and the figures are those without the
 * charge.
 */
export type RuleDecision = Pick<
  Decision,
  'rule' | 'allowed' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetMs' | 'shadow'
>

/** A {@link Decision} as plain data. `rules` is present only with several rules. */
export type DecisionFields = Omit<Decision, 'toJSON' | 'rules'> & {
  readonly rules?: readonly RuleDecision[]
}

/** The fields of every decision. */
export type Fields = Omit<DecisionFields, 'rules'>

/** The estimates of a decision: units, and whole milliseconds from the decision. */
export interface Figures {
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetMs: number
}
