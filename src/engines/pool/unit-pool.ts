import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { Signal } from '../../core/on-abort.js'
import { isEnforced } from '../../core/verdict.js'
import type { RuleMemory } from '../../memory/arenas.js'
import { Op } from '../../memory/request-ring.js'
import { unitIn } from '../../memory/unit.js'
import { noteDamage } from '../damage.js'
import { UnitBatch, unitCosts } from '../inline/unit-batch.js'
import type { SharedLimiter } from '../share.js'
import { PoolEngine, type PoolSettings } from './pool.js'
import type { RequestOptions } from './request.js'

/**
 * The pool of rules of which at least one has the option `unit`. For one rule, the ring carries whole units. For
 * several it carries quantities, and the workers convert them for each rule. A CHECK has only 32 bits for its cost, so
 * this pool sends CHECK_WITHIN then.
 */
class UnitPool extends PoolEngine {
  override check(lo: number, hi: number, cost: number): Promise<unknown> {
    return this.request(Op.CHECK, lo, hi, cost)
  }

  override request(op: Op, lo: number, hi: number, cost: number, options?: RequestOptions): Promise<unknown> {
    const sent = op === Op.CHECK && this.countsInUnits ? Op.CHECK_WITHIN : op
    return super.request(sent, lo, hi, cost, options)
  }

  override async checkMany(
    fingerprints: Int32Array,
    costs: Costs,
    withRemaining: boolean,
    signal?: Signal,
  ): Promise<unknown> {
    const { unit } = this
    if (unit === undefined) return super.checkMany(fingerprints, costs, withRemaining, signal)
    const batch = await super.checkMany(fingerprints, unitCosts(costs, unit), withRemaining, signal)
    return new UnitBatch(batch as BatchDecision, unit)
  }
}

/** The pool of a limiter. @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
export function poolOf(
  { arenas, names, nearLimit }: RuleMemory,
  share: SharedLimiter,
  settings: PoolSettings,
) {
  const rules = arenas.map((arena, i) => ({
    ruleName: names[i]!,
    isShadow: !isEnforced(arena),
    unit: unitIn(arena.words),
  }))
  const Made = rules.some(({ unit }) => unit !== undefined) ? UnitPool : PoolEngine
  return new Made(share, settings, rules, nearLimit, (error) => noteDamage(arenas[0].words, error))
}
