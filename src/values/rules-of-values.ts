import { rulesGiven } from '../core/rule.js'
import { checkStoredRule } from '../remote/counting-rule.js'
import type { RemoteRule } from '../remote/remote-rule.js'

/**
 * Checks the rules of a limiter whose keys have one value each. They may have different algorithms.
 * @param on the name of the store, for errors
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`
 */
export function rulesOfValues(options: object, on: string): readonly RemoteRule[] {
  const [rules, pathOf] = rulesGiven(options)
  return rules.map((rule, i) => checkStoredRule(rule, pathOf(i), on))
}
