import { createHash } from 'node:crypto'
import type { Rule } from '../core/rule.js'
import type { AlgorithmName } from '../core/rule-algorithms.js'
import { invalidRule } from '../core/rule-algorithms.js'
import { checkRemoteRule, type RemoteRule } from '../remote/remote-rule.js'

/** The algorithms that have a script of their own. The keys of the others are packed strings. */
const COUNTING: readonly AlgorithmName[] = ['sliding-log', 'sliding-counter']

/** The longest window in whole milliseconds for which all products in the scripts stay below 2^53. */
const LONGEST_WINDOW_MS = 366 * 86_400_000

/** How the keys of all rules of a limiter are kept. */
export type Kind = 'packed' | 'sliding-log' | 'sliding-counter'

export const kindOf = ({ algorithm }: Rule): Kind =>
  algorithm === 'sliding-log' || algorithm === 'sliding-counter' ? algorithm : 'packed'

/**
 * Checks the rules of one limiter. All of them are kept alike, because one script decides.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` for a rule that Redis can't have, and for a mix
 */
export function checkStoredRules(rules: readonly Rule[], pathOf: (index: number) => string): RemoteRule[] {
  const kind = kindOf(rules[0]!)
  return rules.map((rule, i) => {
    const path = pathOf(i)
    if (kindOf(rule) !== kind) throw invalidRule(`${path}algorithm`, rule.algorithm, expectedBeside(kind))
    return kind === 'packed' ? checkRemoteRule(rule, path) : countingRule(rule, path)
  })
}

function expectedBeside(kind: Kind): string {
  const [log, counter] = COUNTING
  return kind === 'packed'
    ? `neither '${log}' nor '${counter}' beside a rule of another algorithm, on Redis`
    : `'${kind}', as the first rule has: all rules of a limiter or none, on Redis`
}

/** `parts` are those of `limiter.rule.granularityMs`: a log has milliseconds, a counter its whole window. */
function countingRule(rule: Rule, path: string): RemoteRule {
  const { algorithm, windowMs, buckets } = rule
  if (!Number.isInteger(windowMs)) throw invalidRule(`${path}window`, windowMs, 'whole milliseconds on Redis')
  if (windowMs > LONGEST_WINDOW_MS) throw invalidRule(`${path}window`, windowMs, 'at most 366 days on Redis')
  const parts = algorithm === 'sliding-log' ? windowMs : buckets
  return { rule, parts, flags: rule.flags, windowMs, shape: shapeOf(`${algorithm} ${windowMs}`) }
}

/** A checksum of algorithm and window, 16 bits. */
const shapeOf = (text: string): number => createHash('sha1').update(text).digest().readUInt16BE()
