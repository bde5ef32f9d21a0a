import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import { Outcome } from '../../core/inline-decision.js'
import type { Signal } from '../../core/on-abort.js'
import { UnitDecision } from '../../core/unit-decision.js'
import { unitsBetween, unitsOf, wholeUnitsIn } from '../../core/units.js'
import { Op } from '../../memory/request-ring.js'
import { UnitBatch, unitCosts } from '../inline/unit-batch.js'
import type { PoolEngine } from './pool.js'
import type { AnyPoolDecision, PoolDecision } from './pool-decision.js'
import { DECISIONS, type RequestOptions } from './request.js'

type Decided = UnitDecision<PoolDecision>

/**
 * The pool of a limiter: `PoolEngine`, or `UnitPool` for one rule with the option `unit`. `PoolEngine`
 * documents the methods.
 */
export interface Pool {
  check(lo: number, hi: number, cost: number): Promise<unknown>
  request(op: Op, lo: number, hi: number, cost: number, options?: RequestOptions): Promise<unknown>
  requestWithMs(op: Op, lo: number, hi: number, ms: number, rule?: number): Promise<unknown>
  chargeMore(lo: number, hi: number, cost: number, actualCost: number, shadowed: number): Promise<unknown>
  owns(decision: unknown): decision is AnyPoolDecision | Decided
  giveBack(decision: AnyPoolDecision | Decided, part?: number): Promise<unknown>
  forceGiveBack(decision: AnyPoolDecision | Decided): Promise<unknown>
  checkMany(keys: Int32Array, costs: Costs, withRemaining: boolean, signal?: Signal): Promise<unknown>
  ready(): Promise<void>
  flush(): Promise<void>
  close(): Promise<void>
}

/**
 * Sends the requests of a rule with the option `unit` to a pool. Its methods take and return quantities. The
 * requests and replies in the ring are in whole units.
 */
export class UnitPool implements Pool {
  readonly #counting: PoolEngine
  readonly #unit: number

  constructor(counting: PoolEngine, unit: number) {
    this.#counting = counting
    this.#unit = unit
  }

  check(lo: number, hi: number, cost: number): Promise<Decided> {
    return this.#decided(this.#counting.check(lo, hi, unitsOf(cost, this.#unit)), cost)
  }

  async request(op: Op, lo: number, hi: number, cost: number, options?: RequestOptions): Promise<unknown> {
    const unit = this.#unit
    if (op === Op.REFUND) {
      const refunded = await this.#counting.request(op, lo, hi, wholeUnitsIn(cost, unit), options)
      return (refunded as number) * unit
    }
    const reply = this.#counting.request(op, lo, hi, unitsOf(cost, unit), this.#inUnits(options))
    return DECISIONS.includes(op) ? this.#decided(reply, cost) : reply
  }

  async requestWithMs(op: Op, lo: number, hi: number, ms: number): Promise<unknown> {
    const reply = await this.#counting.requestWithMs(op, lo, hi, ms)
    return op === Op.USAGE ? (reply as number) * this.#unit : reply
  }

  async chargeMore(
    lo: number,
    hi: number,
    cost: number,
    actualCost: number,
    shadowed: number,
  ): Promise<number> {
    const units = unitsBetween(actualCost, cost, this.#unit)
    return ((await this.#counting.chargeMore(lo, hi, 0, units, shadowed)) as number) * this.#unit
  }

  owns(decision: unknown): decision is Decided {
    return UnitDecision.is(decision) && this.#counting.owns(decision.counted)
  }

  /** For a part of the cost, gives back the units that the rest of the cost does not take. */
  async giveBack(decision: Decided, part = decision.cost): Promise<unknown> {
    const units = decision.unitsOf(part)
    if (decision.outcome !== Outcome.CHARGED || units === 0) return 0
    return ((await this.#counting.giveBack(decision.counted, units)) as number) * this.#unit
  }

  forceGiveBack({ counted }: Decided): Promise<unknown> {
    return this.#counting.forceGiveBack(counted)
  }

  async checkMany(
    fingerprints: Int32Array,
    costs: Costs,
    withRemaining: boolean,
    signal?: Signal,
  ): Promise<BatchDecision> {
    const units = unitCosts(costs, this.#unit)
    const batch = await this.#counting.checkMany(fingerprints, units, withRemaining, signal)
    return new UnitBatch(batch as BatchDecision, this.#unit)
  }

  ready(): Promise<void> {
    return this.#counting.ready()
  }

  flush(): Promise<void> {
    return this.#counting.flush()
  }

  close(): Promise<void> {
    return this.#counting.close()
  }

  #inUnits(options: RequestOptions | undefined): RequestOptions | undefined {
    if (options?.limit === undefined) return options
    return { ...options, limit: wholeUnitsIn(options.limit as number, this.#unit) } // a pool of one rule
  }

  async #decided(reply: Promise<unknown>, cost: number): Promise<Decided> {
    return new UnitDecision((await reply) as PoolDecision, cost, this.#unit)
  }
}
