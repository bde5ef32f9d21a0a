import type { Charge } from '../../algorithms/algorithm.js'
import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { Decision } from '../../core/decision.js'
import type { FigureCounts, RuleCounts } from '../../core/decision-counts.js'
import { type InlineDecision, Outcome } from '../../core/inline-decision.js'
import type { Reading } from '../../core/reading.js'
import { UnitDecision } from '../../core/unit-decision.js'
import { unitsBetween, unitsOf, wholeUnitsIn } from '../../core/units.js'
import type { Arena } from '../../memory/records.js'
import type { Changes, CountedStatistics, Engine } from '../engine.js'
import type { DecisionEstimates } from './decision-estimates.js'
import type { InlineEngine } from './inline.js'
import type { KeyChanges } from './key-changes.js'
import type { NearLimit } from './near-limit.js'
import type { SavedCharge } from './saved-charge.js'
import { UnitBatch, unitCosts } from './unit-batch.js'
import type { Views } from './views.js'

/**
 * Decides by one rule with the option `unit`. Its methods take and return quantities, and an `InlineEngine`
 * decides in whole units. This class does not extend `InlineEngine`. So V8 compiles the methods of
 * `InlineEngine` for one class, and limiters without units keep their speed in a process with both.
 */
export class UnitEngine implements Engine<UnitDecision> {
  readonly changes: UnitChanges
  readonly reading: Reading
  readonly isShadow: boolean
  readonly #counting: InlineEngine
  readonly #unit: number

  constructor(counting: InlineEngine, unit: number) {
    this.changes = new UnitChanges(counting.changes, unit)
    this.reading = counting.reading
    this.isShadow = counting.isShadow
    this.#counting = counting
    this.#unit = unit
  }

  get limit(): number {
    return this.#counting.limit * this.#unit
  }

  get arena(): Arena {
    return this.#counting.arena
  }

  get estimates(): DecisionEstimates {
    return this.#counting.estimates
  }

  /** The way of the last decision, or -1. */
  get way(): number {
    return this.#counting.way
  }

  checkNow(lo: number, hi: number, cost: number, hint?: number): UnitDecision {
    return this.#decided(this.#counting.checkNow(lo, hi, unitsOf(cost, this.#unit), hint), cost)
  }

  checkWithin(limit: number, lo: number, hi: number, cost: number, hint?: number): UnitDecision {
    const unit = this.#unit
    const counted = this.#counting.checkWithin(wholeUnitsIn(limit, unit), lo, hi, unitsOf(cost, unit), hint)
    return this.#decided(counted, cost)
  }

  touch(lo: number, hint: number): number {
    return this.#counting.touch(lo, hint)
  }

  checkSet(lo: number, hi: number, cost: number, hint: number, limit: number | undefined): UnitDecision {
    const units = unitsOf(cost, this.#unit)
    return this.#decided(this.#counting.checkSet(lo, hi, units, hint, this.#wholeLimit(limit)), cost)
  }

  peek(lo: number, hi: number, cost: number, limit?: number): UnitDecision {
    const units = unitsOf(cost, this.#unit)
    return this.#decided(this.#counting.peek(lo, hi, units, this.#wholeLimit(limit)), cost)
  }

  peekSet(lo: number, hi: number, cost: number, limit?: number): UnitDecision {
    const units = unitsOf(cost, this.#unit)
    return this.#decided(this.#counting.peekSet(lo, hi, units, this.#wholeLimit(limit)), cost)
  }

  takeBack({ counted, cost }: UnitDecision): UnitDecision {
    return this.#decided(this.#counting.takeBack(counted), cost)
  }

  get countsRefused(): boolean {
    return this.#counting.countsRefused
  }

  withoutCharge<T>(decide: () => T): T {
    return this.#counting.withoutCharge(decide)
  }

  checkMany(fingerprints: Int32Array, costs: Costs, withRemaining: boolean): BatchDecision {
    const unit = this.#unit
    return new UnitBatch(this.#counting.checkMany(fingerprints, unitCosts(costs, unit), withRemaining), unit)
  }

  owns(decision: unknown): decision is UnitDecision {
    return UnitDecision.is(decision) && this.#counting.owns(decision.counted)
  }

  restored(saved: SavedCharge, lo: number, hi: number, cost: number): UnitDecision {
    return this.#decided(this.#counting.restored(saved, lo, hi, unitsOf(cost, this.#unit)), cost)
  }

  giveBack(decision: UnitDecision, part?: number): number {
    if (decision.outcome !== Outcome.CHARGED) return 0
    this.reading.take() // may throw, and the decision can then be given back later
    return this.changes.takeBack(decision, part)
  }

  usage(lo: number, hi: number, lastMs: number): number {
    return this.#counting.usage(lo, hi, lastMs) * this.#unit
  }

  get near(): NearLimit {
    return this.#counting.near
  }

  get views(): Views {
    return this.#counting.views
  }

  get lastNear(): number {
    return this.#counting.lastNear
  }

  set lastNear(near: number) {
    this.#counting.lastNear = near
  }

  uncount(decision: Decision, near: number): void {
    this.#counting.uncount(decision, near)
  }

  counted(): FigureCounts & RuleCounts {
    return this.#counting.counted()
  }

  statistics(): CountedStatistics {
    return this.#counting.statistics()
  }

  flush(): void {
    this.#counting.flush()
  }

  close(): void {
    this.#counting.close()
  }

  #decided(counted: InlineDecision, cost: number): UnitDecision {
    return new UnitDecision(counted, cost, this.#unit)
  }

  #wholeLimit(limit: number | undefined): number | undefined {
    return limit === undefined ? undefined : wholeUnitsIn(limit, this.#unit)
  }
}

/** The changes of keys, by quantities. */
class UnitChanges implements Changes {
  readonly #counting: KeyChanges
  readonly #unit: number

  constructor(counting: KeyChanges, unit: number) {
    this.#counting = counting
    this.#unit = unit
  }

  /** Takes out whole units, at most those in `most`. */
  refund(lo: number, hi: number, most: number): number {
    const unit = this.#unit
    return this.#counting.refund(lo, hi, wholeUnitsIn(most, unit)) * unit
  }

  penalize(lo: number, hi: number, cost: number): boolean {
    return this.#counting.penalize(lo, hi, unitsOf(cost, this.#unit))
  }

  /** Charges the units that `actualCost` takes beyond those of `cost`. */
  chargeMore(lo: number, hi: number, cost: number, actualCost: number, shadowed: number): number {
    const units = unitsBetween(actualCost, cost, this.#unit)
    return this.#counting.chargeMore(lo, hi, 0, units, shadowed) * this.#unit
  }

  block(lo: number, hi: number, ms: number): boolean {
    return this.#counting.block(lo, hi, ms)
  }

  unblock(lo: number, hi: number): boolean {
    return this.#counting.unblock(lo, hi)
  }

  clear(lo: number, hi: number): void {
    this.#counting.clear(lo, hi)
  }

  clearAll(): void {
    this.#counting.clearAll()
  }

  /** For a part of the cost, gives back the units that the rest of the cost does not take. */
  takeBack(decision: UnitDecision, part = decision.cost): number {
    const units = decision.unitsOf(part)
    return units === 0 ? 0 : this.#counting.takeBack(decision.counted, units) * this.#unit
  }

  /** `units` are whole units. Returns a quantity. */
  takeBackFrom(way: number, charge: Charge, units: number): number {
    return this.#counting.takeBackFrom(way, charge, units) * this.#unit
  }
}
