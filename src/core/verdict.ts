// What a rule says of a request, and what comes of it by the rule's options `countRefused` and `shadow`.
import { OPTION_ROWS } from './rule-options.js'

export const COUNT_REFUSED = OPTION_ROWS.countRefused.flag
export const SHADOW = OPTION_ROWS.shadow.flag

/** Whether a rule has room for a request, and how long until it has. */
export interface Verdict {
  readonly allowed: boolean
  readonly retryAfterMs: number
}

/** The decision of a rule with the option `shadow`, which allows every request. */
export interface ShadowDecision {
  /** Whether the rule would have admitted the request. */
  readonly allowed: boolean
  /** Whole milliseconds until it would have: 0 if allowed, else at least 1. May be `Infinity`. */
  readonly retryAfterMs: number
}

/** A verdict as it is enforced, with the verdict itself beside it if the rule has the option `shadow`. */
export interface Enforced extends Verdict {
  readonly shadow?: ShadowDecision | undefined
}

/** Something with a rule's flags: the bits of its options that are true (`OptionRow.flag`). */
interface Flagged {
  readonly flags: number
}

/** Whether the rule refuses what it has no room for. */
export const isEnforced = ({ flags }: Flagged): boolean => (flags & SHADOW) === 0

/** Whether the rule charges what it refuses. */
export const countsRefusals = ({ flags }: Flagged): boolean => (flags & COUNT_REFUSED) !== 0

/** Whether the rule charges or allows what it refuses. Then TypeScript handles refusals, not the addon. */
export const changesRefusals = ({ flags }: Flagged): boolean => (flags & (COUNT_REFUSED | SHADOW)) !== 0

/** What comes of a rule's verdict. */
export const enforced = (verdict: Verdict, rule: Flagged): Enforced =>
  isEnforced(rule) ? verdict : { allowed: true, retryAfterMs: 0, shadow: verdict }

/** The verdict of a decision, or of a rule in it, whether it was enforced or not. */
export const verdictOf = (decision: Enforced): Verdict => decision.shadow ?? decision

/** Whether a decision of one rule was enforced. */
export const wasEnforced = ({ shadow }: Enforced): boolean => shadow === undefined

/** One decision of several about the same request. */
export function strictest(all: readonly Enforced[]): Enforced {
  const shadows = all.flatMap(({ shadow }) => shadow ?? [])
  return { ...strictestVerdict(all), ...(shadows.length > 0 && { shadow: strictestVerdict(shadows) }) }
}

/** One verdict of several about the same request. */
export const strictestVerdict = (all: readonly Verdict[]): Verdict => ({
  allowed: all.every(({ allowed }) => allowed),
  retryAfterMs: Math.max(...all.map(({ retryAfterMs }) => retryAfterMs)),
})

/** The option that makes another rule as little enforced as this one. */
export const enforcementOf = (rule: Flagged): { shadow?: true } => (isEnforced(rule) ? {} : { shadow: true })
