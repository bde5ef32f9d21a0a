import type { Clock } from '../../core/clock.js'
import { Outcome } from '../../core/inline-decision.js'
import { NEAR_LIMIT } from '../../core/near-limit.js'
import type { RulesDecision } from '../../core/rules-decision.js'
import { countedOf } from '../../core/unit-decision.js'
import type { RuleMemory } from '../../memory/arenas.js'
import { LIMIT, limitOfWord, OUTCOME, REFUSING, UNITS, WAY } from '../../memory/request-ring.js'
import { unitIn } from '../../memory/unit.js'
import { hasUnit, NO_LIMITS } from '../inline/rule-engine.js'
import { RulesEngine } from '../inline/rules-engine.js'
import { writeDecision } from './pool-decision.js'
import { chargeIn, RequestHandler } from './request-handler.js'
import { type RingMemory, slotOfRule } from './ring-transport.js'

const NO_WAY = -1

/**
 * Handles the requests of a ring by several rules. The addon does not read this ring: `RulesEngine` calls it
 * for each rule.
 */
export class RulesHandler extends RequestHandler {
  protected readonly engine: RulesEngine
  /** By rule: its unit, or 1. */
  readonly #units: readonly number[]

  constructor(ring: RingMemory, { arenas, names, nearLimit = NEAR_LIMIT }: RuleMemory, clock: Clock) {
    super(ring, names, arenas.some(hasUnit))
    this.engine = new RulesEngine(arenas, names, clock, nearLimit)
    this.#units = arenas.map(({ words }) => unitIn(words) ?? 1)
  }

  protected check(slot: number, lo: number, hi: number, cost: number): void {
    this.#decide(slot, lo, hi, cost, NO_LIMITS)
  }

  protected checkWithin(slot: number, lo: number, hi: number, cost: number): void {
    this.#decide(slot, lo, hi, cost, this.#limitsIn(slot))
  }

  protected peek(slot: number, lo: number, hi: number, cost: number): void {
    this.#write(slot, this.engine.peek(lo, hi, cost, this.#limitsIn(slot)))
  }

  protected usage(rule: number, lo: number, hi: number, ms: number): number {
    return this.engine.engines[rule]!.usage(lo, hi, ms)
  }

  /** Returns the most units that any rule gave back. */
  protected giveBack(slot: number): number {
    const { words } = this.memory
    this.engine.takeReading()
    let most = 0
    for (const [i, { changes }] of this.engine.engines.entries()) {
      const own = slotOfRule(slot, i)
      if (words[own + OUTCOME] !== Outcome.CHARGED) continue
      most = Math.max(
        most,
        changes.takeBackFrom(words[own + WAY]!, chargeIn(this.memory, own), words[own + UNITS]!),
      )
    }
    return most
  }

  #decide(slot: number, lo: number, hi: number, cost: number, limits: readonly (number | undefined)[]): void {
    const { engine } = this
    if (!this.hasReading) {
      engine.takeReading()
      this.hasReading = true
    }
    this.#write(slot, engine.check(lo, hi, cost, NO_WAY, limits))
  }

  #write(slot: number, { rules, refusing }: RulesDecision): void {
    for (let i = 0; i < rules.length; i++)
      writeDecision(this.memory, slotOfRule(slot, i), countedOf(rules[i]!))
    this.memory.words[slot + REFUSING] = refusing
  }

  /** The limits of the call, by rule; undefined for a rule without one. */
  #limitsIn(slot: number): (number | undefined)[] {
    const { words } = this.memory
    return this.engine.engines.map((_, i) => {
      const limit = limitOfWord(words[slotOfRule(slot, i) + LIMIT]!)
      return limit === undefined ? undefined : limit * this.#units[i]!
    })
  }
}
