import { ADMITTED, type Algorithm, SUSPECT } from '../../algorithms/algorithm.js'
import { InlineDecision, Outcome } from '../../core/inline-decision.js'
import type { Reading } from '../../core/reading.js'
import { RuleCharge } from '../../core/rules-decision.js'
import { NAMES_AT } from '../../memory/layout.js'
import type { PresentRule } from '../../memory/limit.js'
import type { Table } from '../../memory/table.js'
import { read, type Words } from '../../memory/words.js'
import { STATUS } from '../../native/native-params.js'
import type { NativeSingle } from '../../native/single.js'
import type { DecidingEngine } from './deciding-engine.js'
import { keepDetails, needsDetails } from './decision-estimates.js'
import type { View } from './views.js'

/** Whether any rule of an admission may have left the key near its limit. */
export interface Suspects {
  any: boolean
}

/**
 * The usual case of a decision by one of several rules: the key is in the table, no other thread interferes, and the
 * charge fits. `RulesEngine` lets all rules charge before it makes an object for any of them. So the code between two
 * charges is short, and the processor fetches the cells of the later rules meanwhile.
 */
export class RuleAttempt {
  readonly #words: Words
  readonly #rule: PresentRule
  readonly #reading: Reading
  readonly #engine: DecidingEngine
  /** Of all rules. */
  suspects: Suspects = { any: false }
  #algorithm: Algorithm
  #table: Table
  #single: NativeSingle | undefined
  #limit = 0
  #way = 0

  constructor(engine: DecidingEngine, rule: PresentRule, { algorithm, arena, reading, table }: View) {
    this.#words = arena.words
    this.#rule = rule
    this.#reading = reading
    this.#engine = engine
    this.#algorithm = algorithm
    this.#table = table
  }

  /** Goes on with another record. `single` carries out calls of the addon by it. */
  use({ algorithm, table }: View, single: NativeSingle | undefined): void {
    this.#algorithm = algorithm
    this.#table = table
    this.#single = single
  }

  /** Whether the addon decides single keys. */
  get hasAddon(): boolean {
    return this.#single !== undefined
  }

  /** A way that is likely to be the key's, or -1. */
  guess(lo: number, hi: number): number {
    return this.#table.guess(lo, hi)
  }

  /**
   * Reads the words that a decision on this way reads first, so that the processor fetches their cache lines.
   * Returns any number, which the caller must use: V8 leaves out a read without a use.
   */
  touch(way: number): number {
    return read(this.#words, NAMES_AT + way) | this.#algorithm.touch(way, this.#reading.tick)
  }

  /**
   * Goes on with the present record and its limit, before any rule charges: the reading may be too far off for another
   * record.
   * @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK`
   */
  begin(): void {
    this.#limit = this.#rule.readLimit()
  }

  /** Charges `cost`, 1 or more, on this way. Returns false if it did not, for any reason. Throws nothing. */
  charges(way: number, lo: number, hi: number, cost: number): boolean {
    const limit = this.#limit
    this.#way = way
    if (cost > limit) return false
    const found = this.#algorithm.attempt(way, lo, hi, cost, limit, this.#reading)
    if (found === ADMITTED) return true
    if (found !== SUSPECT) return false
    this.suspects.any = true
    return true
  }

  /**
   * What the last call of `charges`, which returned true, has charged; `next` is that of the next rule. Undefined if it
   * takes a whole decision to keep it, or its figures are read. The reading must not be nearly whole
   * (`decision-estimates.ts`).
   */
  charge(next: RuleCharge | undefined): RuleCharge | undefined {
    const { chargedTick, chargedStamp, lastAdm, hasWholeMs } = this.#algorithm
    const engine = this.#engine
    if (chargedStamp !== 0 || engine.demand.left > 0) return undefined
    const { nowMs } = this.#reading
    const at = hasWholeMs ? Math.floor(nowMs) : nowMs
    return new RuleCharge(engine.era, this.#limit, at, this.#way, chargedTick, lastAdm, next)
  }

  /** What the addon has charged, from the memory of this rule's calls. */
  chargeByAddon(next: RuleCharge | undefined): RuleCharge | undefined {
    const single = this.#single!
    const engine = this.#engine
    const { status } = single
    if ((status & ~STATUS.SUSPECT) !== STATUS.DONE || single.chargedStamp !== 0) return undefined
    const { way, nowMs, limit, lastAdm, chargedTick } = single
    engine.way = way
    if (status !== STATUS.DONE) this.suspects.any = true
    const at = this.#algorithm.hasWholeMs ? Math.floor(nowMs) : nowMs
    return new RuleCharge(engine.era, limit, at, way, chargedTick, lastAdm, next)
  }

  /** The decision of the last call of `charges`, which returned true. */
  decision(lo: number, hi: number, cost: number): InlineDecision {
    const { chargedTick, chargedStamp, lastAdm, lastUntil, blockMask, hasWholeMs } = this.#algorithm
    const { nowMs } = this.#reading
    const engine = this.#engine
    const way = this.#way
    const at = hasWholeMs ? Math.floor(nowMs) : nowMs
    // biome-ignore format: one line
    const made = new InlineDecision(engine.era, lo, hi, cost, this.#limit, at, Outcome.CHARGED, way, chargedTick, chargedStamp, lastAdm)
    if (needsDetails(at, nowMs, lastAdm, blockMask)) keepDetails(made, at, nowMs, lastUntil, blockMask)
    engine.way = way
    if (engine.demand.left > 0) {
      engine.demand.left--
      engine.estimates.giveFigures(made)
    }
    return made
  }
}
