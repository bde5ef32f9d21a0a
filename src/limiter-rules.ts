import type { LimiterRule } from './limiter-options.js'
import type { RuleMemory } from './memory/arenas.js'

/** The rule of a limiter at an index, with its present limit. */
export function ruleOf({ arenas, names }: RuleMemory, index: number, limit: number): LimiterRule {
  const { shape, edge } = arenas[index]!
  const { windowMs, buckets } = shape
  return { name: names[index]!, limit, windowMs, granularityMs: windowMs / buckets, edge }
}

/** The fields that `console.log` prints of a limiter. */
export function shownRules(rules: readonly LimiterRule[]): object {
  return rules.length === 1 ? rules[0]! : { rules }
}
