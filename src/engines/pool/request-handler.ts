import type { Charge } from '../../algorithms/algorithm.js'
import type { FigureCounts } from '../../core/decision-counts.js'
import {
  CHARGED_TICK,
  COST,
  EACH,
  HI,
  LIMIT,
  LO,
  NUMBER,
  OF_ALL,
  OF_RULE,
  OP,
  Op,
  OUTCOME,
  QUANTITY,
  REFUNDS,
  requestOf,
  WAY,
} from '../../memory/request-ring.js'
import type { Engine, OwnDecision } from '../engine.js'
import type { RingHandler } from './ring-server.js'
import { AREAS, type Area, type RingMemory, slotOfRule } from './ring-transport.js'

/**
 * Requests that follow each other within microseconds share one reading of the clock, as the keys of a batch
 * do.
 */
const REQUESTS_PER_READING = 16

/** The charge in a slot. */
export const chargeIn = ({ words, doubles }: RingMemory, slot: number): Charge => ({
  tick: words[slot + CHARGED_TICK]!,
  receipt: words[slot + REFUNDS]!,
  limit: words[slot + LIMIT]!,
  at: doubles[(slot >>> 1) + NUMBER]!,
})

/**
 * Handles the requests of a ring. Each subclass handles those whose replies depend on the number of rules. A
 * worker serves one pool, so all of its handlers have one class.
 */
export abstract class RequestHandler implements RingHandler {
  readonly memory: RingMemory
  protected abstract readonly engine: Engine<OwnDecision>
  /** Whether costs are quantities, which may need more than 32 bits: any of several rules has a unit. */
  protected readonly countsInUnits: boolean
  readonly #names: readonly string[]
  readonly #areas: readonly Area[]
  /** Whether the next request decides by the last reading of the clock. */
  protected hasReading = false

  constructor(memory: RingMemory, names: readonly string[], countsInUnits: boolean) {
    this.memory = memory
    this.#names = names
    this.countsInUnits = countsInUnits
    this.#areas = Array.from({ length: AREAS }, (_, i) => memory.area(i))
  }

  beforeSleep(): void {
    this.engine.flush()
  }

  /** Leaves all requests to `handle`. */
  handleMany(from: number, _to: number): number {
    return from
  }

  handle(slot: number, nth: number): number {
    if (nth % REQUESTS_PER_READING === 0) this.hasReading = false
    const { words, doubles } = this.memory
    const { engine } = this
    const double = slot >>> 1
    const request = requestOf(slot)
    const lo = words[request + LO]!
    const hi = words[request + HI]!
    const cost = this.countsInUnits ? doubles[double + QUANTITY]! : words[request + COST]!
    switch (words[request + OP] as Op) {
      case Op.CHECK:
        this.check(slot, lo, hi, cost)
        break
      case Op.CHECK_WITHIN:
        this.checkWithin(slot, lo, hi, cost)
        break
      case Op.ATTEMPT:
        engine.withoutCharge(() => this.checkWithin(slot, lo, hi, cost))
        break
      case Op.PEEK:
        this.peek(slot, lo, hi, cost)
        break
      case Op.USAGE:
        doubles[double + NUMBER] = this.usage(words[slot + WAY]!, lo, hi, doubles[double + NUMBER]!)
        break
      case Op.GIVE_BACK:
        doubles[double + NUMBER] = this.giveBack(slot)
        break
      case Op.REFUND:
        doubles[double + NUMBER] = engine.changes.refund(lo, hi, cost)
        break
      case Op.PENALIZE:
        doubles[double + NUMBER] = Number(engine.changes.penalize(lo, hi, cost))
        break
      case Op.CHARGE_MORE:
        doubles[double + NUMBER] = engine.changes.chargeMore(
          lo,
          hi,
          doubles[double + NUMBER]!,
          cost,
          words[slot + WAY]!,
        )
        break
      case Op.BLOCK:
        doubles[double + NUMBER] = Number(engine.changes.block(lo, hi, doubles[double + NUMBER]!))
        break
      case Op.UNBLOCK:
        doubles[double + NUMBER] = Number(engine.changes.unblock(lo, hi))
        break
      case Op.CLEAR:
        engine.changes.clear(lo, hi)
        break
      case Op.CLEAR_ALL:
        engine.changes.clearAll()
        break
      case Op.FLUSH:
        engine.flush()
        break
      case Op.BATCH:
        return this.#decideBatch(slot, cost)
    }
    return 1
  }

  /** Decides and charges, and writes the decision into the slot. */
  protected abstract check(slot: number, lo: number, hi: number, cost: number): void
  /** Decides and charges by the limits of the call, which are in the slot, and writes the decision there. */
  protected abstract checkWithin(slot: number, lo: number, hi: number, cost: number): void
  /** Decides by the limits of the call, but charges nothing. */
  protected abstract peek(slot: number, lo: number, hi: number, cost: number): void
  /** The units that the key has used in the last `ms`, by the rule of this index. */
  protected abstract usage(rule: number, lo: number, hi: number, ms: number): number
  /** Gives back UNITS of the charge in the slot. Returns how many. */
  protected abstract giveBack(slot: number): number

  #decideBatch(slot: number, cost: number): number {
    const { words } = this.memory
    const area = this.#areas[words[slot + WAY]!]!
    const length = words[slot + CHARGED_TICK]!
    const { countsInUnits } = this
    const each = countsInUnits ? area.quantities : area.costs
    const costs = cost === EACH ? each.slice(0, length) : cost
    const fingerprints = area.fingerprints.slice(0, 2 * length)
    const before = this.engine.counted()
    const batch = this.engine.checkMany(fingerprints, costs, words[slot + REFUNDS] === 1)
    area.allowed.set(batch.allowed)
    if (batch.remaining) (countsInUnits ? area.remainingQuantities : area.remaining).set(batch.remaining)
    let refused = 0
    for (let i = 0; i < length; i++) if (batch.allowed[i] === 0) refused++
    if (refused > 0) for (let i = 0; i < length; i++) area.retryAfterMs[i] = batch.retryAfterMs(i)
    words[slot + OUTCOME] = refused
    const after = this.engine.counted()
    this.#writeCounts(slot + OF_ALL, before, after)
    for (const [i, rule] of this.#names.entries())
      this.#writeCounts(slotOfRule(slot, i) + OF_RULE, before.rules[rule]!, after.rules[rule]!)
    return length
  }

  /** Writes what was counted between two readings, but for the admissions. */
  #writeCounts(at: number, before: FigureCounts, after: FigureCounts): void {
    const { words } = this.memory
    words[at] = after.refused - before.refused
    words[at + 1] = after.blocked - before.blocked
    words[at + 2] = after.shadowRefused - before.shadowRefused
    words[at + 3] = after.nearLimit - before.nearLimit
  }
}
