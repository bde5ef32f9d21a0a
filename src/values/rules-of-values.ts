import { invalid } from '../core/errors.js'
import { checkRule, checkRules } from '../core/rule.js'
import { RULE_OPTIONS, type RuleOptions } from '../core/rule-options.js'
import { checkStoredRule } from '../remote/counting-rule.js'
import type { RemoteRule } from '../remote/remote-rule.js'

/**
 * Checks the rules of a limiter whose keys have one value each. They may have different algorithms.
 * @param on the name of the store, for errors
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`, `ERR_MILLRACE_INVALID_OPTION`
 */
export function rulesOfValues(options: object, on: string): readonly RemoteRule[] {
  const { rules } = options as { rules?: unknown }
  if (rules === undefined) return [checkStoredRule(checkRule(options as RuleOptions), '', on)]
  const given = options as Record<string, unknown>
  const beside = RULE_OPTIONS.find((name) => given[name] !== undefined)
  if (beside !== undefined) throw invalid(beside, 'an option of a rule', 'no such option beside rules')
  return checkRules(rules).map((rule, i) => checkStoredRule(rule, `rules[${i}].`, on))
}
