import type { RuleNames } from './checks.js'
import { DEFAULT_ALGORITHM } from './core/rule.js'
import type { RuleEngine } from './engines/rule-engine.js'
import type { LimiterRule } from './limiter-options.js'
import type { RuleMemory } from './memory/arenas.js'
import type { Shape } from './memory/layout.js'
import { unitIn } from './memory/unit.js'

/** The window and the cells of a rule at present. */
export function presentShape(engine: RuleEngine): Shape {
  engine.limit // goes on with the present record
  return engine.arena.shape
}

/** The rule of an engine, as it is at present. */
export function ruleOf(name: string, engine: RuleEngine): LimiterRule {
  const { limit } = engine // goes on with the present record
  const { shape, edge, words, algorithm } = engine.arena
  const { windowMs, buckets } = shape
  const unit = unitIn(words)
  return {
    name,
    limit,
    windowMs,
    granularityMs: windowMs / buckets,
    edge,
    ...(algorithm !== DEFAULT_ALGORITHM && { algorithm }),
    ...(unit !== undefined && { unit }),
  }
}

/** The names of a limiter's rules, and the unit of each; undefined without one. */
export function ruleNamesOf({ arenas, names }: RuleMemory): RuleNames {
  return { names, units: arenas.map(({ words }) => unitIn(words)) }
}

/** The fields that `console.log` prints of a limiter. */
export function shownRules(rules: readonly LimiterRule[]): object {
  return rules.length === 1 ? rules[0]! : { rules }
}
