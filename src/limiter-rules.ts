import type { RuleNames } from './checks.js'
import type { LimiterRule } from './limiter-options.js'
import type { RuleMemory } from './memory/arenas.js'
import { unitIn } from './memory/unit.js'

/** The rule of a limiter at an index, with its present limit. */
export function ruleOf({ arenas, names }: RuleMemory, index: number, limit: number): LimiterRule {
  const { shape, edge, words } = arenas[index]!
  const { windowMs, buckets } = shape
  const unit = unitIn(words)
  const rule = { name: names[index]!, limit, windowMs, granularityMs: windowMs / buckets, edge }
  return unit === undefined ? rule : { ...rule, unit }
}

/** The names of a limiter's rules, and the unit of each; undefined without one. */
export function ruleNamesOf({ arenas, names }: RuleMemory): RuleNames {
  return { names, units: arenas.map(({ words }) => unitIn(words)) }
}

/** The fields that `console.log` prints of a limiter. */
export function shownRules(rules: readonly LimiterRule[]): object {
  return rules.length === 1 ? rules[0]! : { rules }
}
