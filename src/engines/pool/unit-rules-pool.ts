import { isEnforced } from '../../core/verdict.js'
import type { RuleMemory } from '../../memory/arenas.js'
import { Op } from '../../memory/request-ring.js'
import { unitIn } from '../../memory/unit.js'
import { noteDamage } from '../damage.js'
import type { SharedLimiter } from '../share.js'
import { PoolEngine, type PoolSettings } from './pool.js'
import type { RequestOptions } from './request.js'
import { type Pool, UnitPool } from './unit-pool.js'

/**
 * The pool of several rules of which at least one has the option `unit`. The ring carries quantities, and the
 * workers convert them for each rule. A CHECK has only 32 bits for its cost, so this pool sends CHECK_WITHIN.
 */
export class UnitRulesPool extends PoolEngine {
  override check(lo: number, hi: number, cost: number): Promise<unknown> {
    return this.request(Op.CHECK, lo, hi, cost)
  }

  override request(op: Op, lo: number, hi: number, cost: number, options?: RequestOptions): Promise<unknown> {
    return super.request(op === Op.CHECK ? Op.CHECK_WITHIN : op, lo, hi, cost, options)
  }
}

/** The pool of a limiter. @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
export function poolOf({ arenas, names }: RuleMemory, share: SharedLimiter, settings: PoolSettings): Pool {
  const units = arenas.map(({ words }) => unitIn(words))
  const rules = arenas.map((arena, i) => ({
    ruleName: names[i]!,
    isShadow: !isEnforced(arena),
    unit: units[i],
  }))
  const onDamage = (error: unknown) => noteDamage(arenas[0].words, error)
  const [unit] = units
  if (arenas.length === 1) {
    const pool = new PoolEngine(share, settings, rules, onDamage)
    return unit === undefined ? pool : new UnitPool(pool, unit)
  }
  return units.every((each) => each === undefined)
    ? new PoolEngine(share, settings, rules, onDamage)
    : new UnitRulesPool(share, settings, rules, onDamage)
}
