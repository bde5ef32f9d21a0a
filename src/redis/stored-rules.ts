import { ALGORITHM_ROWS, type AlgorithmName } from '../core/algorithms.js'
import type { Rule } from '../core/rule.js'
import { invalidRule } from '../core/rule-algorithms.js'
import { checkStoredRule, type Kind, kindOf } from '../remote/counting-rule.js'
import type { RemoteRule } from '../remote/remote-rule.js'

/** The names of the algorithms that have a script of their own. */
export const scriptedNames = (between: string): string =>
  (Object.keys(ALGORITHM_ROWS) as AlgorithmName[])
    .filter((algorithm) => ALGORITHM_ROWS[algorithm].server && kindOf({ algorithm }) !== 'packed')
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
    return checkStoredRule(rule, path, 'Redis')
  })
}

function expectedBeside(kind: Kind): string {
  return kind === 'packed'
    ? `neither ${scriptedNames(' nor ')} beside a rule of another algorithm, on Redis`
    : `'${kind}', as the first rule has: all rules of a limiter or none, on Redis`
}
