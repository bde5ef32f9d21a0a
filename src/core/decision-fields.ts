/** The fields of a decision as plain data, and their ranges. */
import type { Decision, Fields, Figures, RuleDecision } from './decision.js'

/**
 * The largest `retryAfterSeconds`: 24.8 days, the longest time in whole seconds that a JavaScript timer
 * accepts. A timer that is set for longer fires at once. A client with a larger number would retry in a loop.
 */
export const MAX_RETRY_SECONDS = 2_147_483

type Shown = Figures & Pick<Decision, 'limit' | 'shadow'>

/** All fields, in the order of the output. */
export function fieldsOf(decision: Fields): Fields {
  const { allowed, limit, remaining, retryAfterMs, retryAfterSeconds, resetMs, rule, shadow, source } =
    decision
  const fields = { allowed, limit, remaining, retryAfterMs, retryAfterSeconds, resetMs, rule }
  const shadowed = shadow === undefined ? fields : { ...fields, shadow }
  return source === undefined ? shadowed : { ...shadowed, source }
}

/** All fields, without `Infinity`. */
export function jsonOf(decision: Fields): Fields {
  return withoutInfinity(fieldsOf(decision))
}

/** The fields of a rule's part, in the order of the output. */
export function ruleFieldsOf(part: RuleDecision): RuleDecision {
  const { rule, allowed, limit, remaining, retryAfterMs, resetMs, shadow } = part
  const fields = { rule, allowed, limit, remaining, retryAfterMs, resetMs }
  return shadow === undefined ? fields : { ...fields, shadow }
}

/** The fields of a rule's part for JSON, which has no `Infinity`. */
export function ruleJsonOf(part: RuleDecision): RuleDecision {
  return withoutInfinity(ruleFieldsOf(part))
}

const withoutInfinity = <T extends Shown>(fields: T): T => withFigures(fields, finite)

/** The same fields, with what is made of each figure. */
export function withFigures<T extends Shown>(fields: T, of: (figure: number) => number): T {
  const { limit, remaining, retryAfterMs, resetMs, shadow } = fields
  const made = {
    ...fields,
    limit: of(limit),
    remaining: of(remaining),
    retryAfterMs: of(retryAfterMs),
    resetMs: of(resetMs),
  }
  if (shadow === undefined) return made
  return { ...made, shadow: { ...shadow, retryAfterMs: of(shadow.retryAfterMs) } }
}

const finite = (figure: number): number => Math.min(figure, Number.MAX_SAFE_INTEGER)

/** @see Decision.retryAfterSeconds */
export function secondsOf(retryAfterMs: number): number {
  return Math.min(Math.ceil(retryAfterMs / 1000), MAX_RETRY_SECONDS)
}

/** The figures by which parts are compared. */
type Share = Pick<Decision, 'remaining' | 'limit'>

/** The index of the first part with the smallest share of its limit left. */
export function indexOfLeast(parts: readonly Share[]): number {
  let least = 0
  for (let i = 1; i < parts.length; i++) if (hasLess(parts[i]!, parts[least]!)) least = i
  return least
}

/**
 * Whether a part has a smaller share of its limit left. It compares products, because quotients are rounded.
 * Products of counts are exact. Products of quantities may be rounded, but two that differ do so by 2^-44 of
 * their size or more, which rounding does not hide.
 */
export function hasLess(part: Share, other: Share): boolean {
  // What has no limit has the largest share left.
  if (part.limit === Number.POSITIVE_INFINITY || other.limit === Number.POSITIVE_INFINITY)
    return part.limit < other.limit
  return part.remaining * other.limit < other.remaining * part.limit
}
