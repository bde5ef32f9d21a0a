import { createHash } from 'node:crypto'
import { ALGORITHM_ROWS, type AlgorithmName } from '../core/algorithms.js'
import type { Rule } from '../core/rule.js'
import { invalidRule } from '../core/rule-algorithms.js'
import { checkRemoteRule, type RemoteRule } from '../remote/remote-rule.js'

/** The longest window in whole milliseconds for which all products in the scripts stay below 2^53. */
const LONGEST_WINDOW_MS = 366 * 86_400_000

/** How the keys of all rules of a limiter are kept: as packed strings, or by the script of their algorithm. */
export type Kind = 'packed' | AlgorithmName

export const kindOf = ({ algorithm }: Pick<Rule, 'algorithm'>): Kind =>
  ALGORITHM_ROWS[algorithm].server.code === undefined ? algorithm : 'packed'

/** The names of the algorithms that have a script of their own. */
export const scriptedNames = (between: string): string =>
  (Object.keys(ALGORITHM_ROWS) as AlgorithmName[])
    .filter((algorithm) => kindOf({ algorithm }) !== 'packed')
    .map((name) => `'${name}'`)
    .join(between)

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
  return kind === 'packed'
    ? `neither ${scriptedNames(' nor ')} beside a rule of another algorithm, on Redis`
    : `'${kind}', as the first rule has: all rules of a limiter or none, on Redis`
}

/** `parts` are those of `limiter.rule.granularityMs`: a log has milliseconds, a counter its whole window. */
function countingRule(rule: Rule, path: string): RemoteRule {
  const { algorithm, windowMs } = rule
  if (!Number.isInteger(windowMs)) throw invalidRule(`${path}window`, windowMs, 'whole milliseconds on Redis')
  if (windowMs > LONGEST_WINDOW_MS) throw invalidRule(`${path}window`, windowMs, 'at most 366 days on Redis')
  const parts = ALGORITHM_ROWS[algorithm].server.parts(rule)
  return { rule, parts, flags: rule.flags, windowMs, shape: shapeOf(`${algorithm} ${windowMs}`) }
}

/** A checksum of algorithm and window, 16 bits. */
const shapeOf = (text: string): number => createHash('sha1').update(text).digest().readUInt16BE()
