import type { LimiterRule } from '../api/call-options.js'
import type { PresentOptions, RuleNames } from '../api/checks.js'
import { ALGORITHM_ROWS, type LimitRange, rangeOf } from '../core/algorithms.js'
import { limiterRule } from '../core/rule-options.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import type { RuleMemory } from '../memory/arenas.js'
import type { Shape } from '../memory/layout.js'
import type { Arena } from '../memory/records.js'
import { unitIn } from '../memory/unit.js'

/** The window and the cells of a rule at present. */
export function presentShape(engine: RuleEngine): Shape {
  void engine.limit // goes on with the present record
  return engine.arena.shape
}

/**
 * The rule of an engine, as it is at present. Servers read it again and again for their headers: one object literal takes
 * V8 a microsecond, and one that spreads another object and adds to it 20 to 100.
 */
export function ruleOf(name: string, engine: RuleEngine): LimiterRule {
  const { limit } = engine // goes on with the present record
  const { algorithm, align, edge, flags, period, rate, shape, timeZone, words } = engine.arena
  const { windowMs, buckets, units, offsetMs } = shape
  const unit = unitIn(words)
  const granularityMs = windowMs / (ALGORITHM_ROWS[algorithm].units === 'time' ? units : buckets)
  const counted = {
    name,
    limit,
    windowMs,
    buckets,
    units,
    offsetMs,
    algorithm,
    align,
    period,
    timeZone,
    edge,
    flags,
    rate,
    unit,
    granularityMs,
  }
  return limiterRule(counted)
}

/** The rule of an engine, for a change. */
export function presentOptions(engine: RuleEngine): PresentOptions {
  const { limit } = engine // goes on with the present record
  const { arena } = engine
  const { algorithm, align, rate, shape, words } = arena
  const unit = unitIn(words)
  const units = limit / (unit ?? 1)
  return { ...shape, limit: units, algorithm, align, rate, unit, range: rangeIn(arena), shape }
}

const rangeIn = ({ algorithm, rate, shape }: Arena): LimitRange =>
  rangeOf({ algorithm, rate, units: shape.units })

/** The names of a limiter's rules, the unit of each, and the limits that it may have. */
export function ruleNamesOf({ arenas, names }: RuleMemory): RuleNames {
  return { names, units: arenas.map(({ words }) => unitIn(words)), ranges: arenas.map(rangeIn) }
}

/** The fields that `console.log` prints of a limiter. */
export function shownRules(rules: readonly LimiterRule[]): object {
  return rules.length === 1 ? rules[0]! : { rules }
}
