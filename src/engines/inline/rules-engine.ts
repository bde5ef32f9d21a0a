import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { Clock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import { type FigureCounts, isBlocked, type RuleCounts } from '../../core/decision-counts.js'
import { Outcome } from '../../core/inline-decision.js'
import {
  hasOutcome,
  type Parts,
  type RuleCharge,
  type RulePart,
  RulesDecision,
  UNDECIDED,
} from '../../core/rules-decision.js'
import { countedOf } from '../../core/unit-decision.js'
import { isEnforced, verdictOf, wasEnforced } from '../../core/verdict.js'
import type { Arenas } from '../../memory/arenas.js'
import { type ChosenAddon, chooseAddon } from '../../native/addon.js'
import { callOf, callsFor, NativeSeries } from '../../native/series.js'
import type { CountedStatistics, Engine } from '../engine.js'
import { isNearlyWhole } from './decision-estimates.js'
import { type InlineEngine, keyChanges } from './inline.js'
import type { RuleAttempt, Suspects } from './rule-attempt.js'
import { hasUnit, type Limits, NO_LIMITS, type RuleEngine, ruleEngineOf } from './rule-engine.js'
import { decideRulesBatch } from './rules-batch.js'
import { RulesChanges } from './rules-changes.js'
import { Tally } from './tally.js'

const NO_WAY = -1

/**
 * Decides for several rules, all or nothing. It charges the rules in order, by one reading of the clock. If
 * one refuses, the rules before it take their charges back. Until then other threads see these charges. So
 * two decisions at the same time may both refuse, although one of the requests would fit alone. No limit is
 * exceeded: each rule admits by itself.
 *
 * Each rule has an engine of one rule, whose decisions do not count in the statistics.
 */
export class RulesEngine implements Engine<RulesDecision> {
  /** One for each rule, in order. */
  readonly engines: readonly RuleEngine[]
  readonly changes: RulesChanges
  way = NO_WAY
  lastNear = 0
  readonly #names: readonly string[]
  readonly #clock: Clock
  /** Whether any rule has the option `unit`. */
  readonly countsInUnits: boolean
  readonly #addon: ChosenAddon
  readonly #calls: Int32Array
  #series: NativeSeries | undefined
  readonly #tally: Tally
  /** By the index of a rule: what was refused in its name, what it would have refused if it were enforced, and the like. */
  readonly #ofRules: { -readonly [Name in Exclude<keyof FigureCounts, 'admitted'>]: number }[]
  readonly #suspects: Suspects = { any: false }
  readonly #hasShadow: boolean
  /** Those of the engines; undefined if any has a unit of its own. */
  readonly #attempts: readonly RuleAttempt[] | undefined
  /** Whether all rules charge before any makes its decision: not if the addon decides single keys of any. */
  readonly #triesAtOnce: boolean
  /** Only written: see `RuleAttempt.touch`. */
  touched = 0

  constructor(arenas: Arenas, names: readonly string[], clock: Clock, nearLimit?: number) {
    const calls = callsFor(arenas.length)
    this.engines = arenas.map((arena, i) =>
      ruleEngineOf(arena, names[i]!, clock, nearLimit, callOf(calls, i)),
    )
    keyChanges() // a refusal takes charges back, also when there is no file descriptor left to read the module
    this.changes = new RulesChanges(this.engines)
    this.#names = names
    this.countsInUnits = arenas.some(hasUnit)
    const inline = this.engines as readonly InlineEngine[]
    this.#attempts = this.countsInUnits ? undefined : inline.map(({ attempt }) => attempt)
    for (const attempt of this.#attempts ?? []) attempt.suspects = this.#suspects
    this.#triesAtOnce = this.#attempts !== undefined && !this.#attempts.some(({ hasAddon }) => hasAddon)
    this.#addon = chooseAddon()
    this.#calls = calls
    this.#clock = clock
    this.#series = this.#newSeries()
    this.#tally = new Tally(arenas[0])
    this.#ofRules = arenas.map(() => ({ refused: 0, shadowRefused: 0, blocked: 0, nearLimit: 0 }))
    this.#hasShadow = !arenas.every(isEnforced)
  }

  /** With units, each rule has a cost of its own. */
  #newSeries(): NativeSeries | undefined {
    const arenas = this.engines.map(({ arena }) => arena) as [Arenas[0], ...Arenas[0][]]
    if (this.countsInUnits) return undefined
    return NativeSeries.for(this.#addon, arenas, this.#clock, this.#calls)
  }

  /** Reads the clock once for all rules, before any charge: the reading may be too far off for one rule. */
  takeReading(): void {
    this.#setReading(this.#clock.now())
  }

  #setReading(nowMs: number): void {
    const { engines } = this
    for (let i = 0; i < engines.length; i++) engines[i]!.reading.set(nowMs)
  }

  checkNow(lo: number, hi: number, cost: number, hint = NO_WAY): RulesDecision {
    const series = this.#series
    if (series?.accepts(cost) && !(cost > 1 && this.#isAboveLimit(cost, NO_LIMITS))) {
      return this.#checkInSeries(series, lo, hi, cost, hint)
    }
    this.takeReading()
    return this.check(lo, hi, cost, hint, NO_LIMITS)
  }

  checkWithin(limits: Limits, lo: number, hi: number, cost: number, hint = NO_WAY): RulesDecision {
    this.takeReading()
    return this.check(lo, hi, cost, hint, limits)
  }

  /**
   * Decides and charges, by the reading that the caller has taken. `hint` is the last way of the key, or -1.
   * The tables of all rules have the same size, so a key usually has the same way in each.
   */
  check(lo: number, hi: number, cost: number, hint: number, limits: Limits): RulesDecision {
    // A limit is at least 1, but for that of a call.
    if ((cost > 1 || limits !== NO_LIMITS) && this.#isAboveLimit(cost, limits))
      return this.#refuseCost(lo, hi, cost, hint, limits)
    if (this.#triesAtOnce && limits === NO_LIMITS && cost > 0)
      return this.#checkAtOnce(this.#attempts!, lo, hi, cost, hint)
    const { engines } = this
    let touched = 0
    for (let i = 1; i < engines.length; i++) touched |= engines[i]!.touch(lo, hint)
    this.touched = touched
    return this.#decideFrom(0, new Array(engines.length), lo, hi, cost, hint, limits)
  }

  /**
   * Lets the rules charge one after the other, and makes the decision then. It is one function, because V8 would not
   * inline all parts of several.
   *
   * All rules go on with their present records before the first charge, because that may throw. Nothing throws between
   * two charges. Another thread may change a rule after that. A later charge then goes by the limit that held here, as
   * if it had come before the change; or, if the cell has been converted, the attempt finds another name and charges
   * nothing.
   */
  #checkAtOnce(
    attempts: readonly RuleAttempt[],
    lo: number,
    hi: number,
    cost: number,
    hint: number,
  ): RulesDecision {
    const way = hint >= 0 ? hint : attempts[0]!.guess(lo, hi)
    if (way < 0) return this.#decideFrom(0, new Array(attempts.length), lo, hi, cost, way, NO_LIMITS)
    let touched = 0
    for (let i = 0; i < attempts.length; i++) {
      const attempt = attempts[i]!
      attempt.begin()
      touched |= attempt.touch(way)
    }
    this.touched = touched
    let charged = 0
    while (charged < attempts.length && attempts[charged]!.charges(way, lo, hi, cost)) charged++
    // All rules have the same reading.
    if (charged < attempts.length || isNearlyWhole(this.engines[0]!.reading.nowMs))
      return this.#decideRest(attempts, charged, way, lo, hi, cost)
    let charges: RuleCharge | undefined
    for (let i = charged - 1; i >= 0; i--) {
      charges = attempts[i]!.charge(charges)
      if (charges === undefined) return this.#decideRest(attempts, charged, way, lo, hi, cost)
    }
    this.way = way
    this.#tally.admit()
    const decision = new RulesDecision(this, charges!, UNDECIDED, lo, hi, cost)
    return this.#suspects.any ? this.#countSuspects(decision) : decision
  }

  /** The first `charged` rules have charged at once. Makes their decisions, and decides by the others. */
  #decideRest(
    attempts: readonly RuleAttempt[],
    charged: number,
    way: number,
    lo: number,
    hi: number,
    cost: number,
  ): RulesDecision {
    const parts = new Array<RulePart>(attempts.length)
    for (let i = 0; i < charged; i++) parts[i] = attempts[i]!.decision(lo, hi, cost)
    return this.#decideFrom(charged, parts, lo, hi, cost, way, NO_LIMITS)
  }

  /** Decides by the rules from index `from` on. Those before it have charged their parts. */
  #decideFrom(
    from: number,
    parts: RulePart[],
    lo: number,
    hi: number,
    cost: number,
    hint: number,
    limits: Limits,
  ): RulesDecision {
    const { engines } = this
    let way = hint
    let decided = from
    try {
      while (decided < engines.length) {
        const engine = engines[decided]!
        const part = engine.checkSet(lo, hi, cost, way, limits[decided])
        way = engine.way
        parts[decided] = part
        if (!part.allowed) break
        decided++
      }
    } catch (error) {
      // An insertion reads the clock again, which may fail.
      this.#takeBack(parts, decided)
      throw error
    }
    this.way = engines[0]!.way
    if (decided < engines.length) return this.#refuse(parts, decided, lo, hi, cost, limits)
    return this.#admit(parts)
  }

  /** Lets the addon decide as many rules as it can, and TypeScript the rest, by one reading. */
  #checkInSeries(series: NativeSeries, lo: number, hi: number, cost: number, hint: number): RulesDecision {
    const engines = this.engines as readonly InlineEngine[]
    const parts = new Array<RulePart>(engines.length)
    if (!series.readsClock) this.takeReading()
    const admitted = series.decide(lo, hi, cost, hint, engines[0]!.reading.nowMs)
    if (admitted === engines.length) {
      const { nowMs } = series
      const charges = isNearlyWhole(nowMs) ? undefined : chargesByAddon(this.#attempts!)
      if (charges !== undefined) {
        this.way = engines[0]!.way
        this.#tally.admit()
        const decision = new RulesDecision(this, charges, UNDECIDED, lo, hi, cost)
        return this.#suspects.any ? this.#countSuspects(decision) : decision
      }
    }
    for (let i = 0; i < admitted; i++) parts[i] = engines[i]!.decidedInSeries(lo, hi, cost)
    if (admitted === engines.length) {
      this.way = engines[0]!.way
      return this.#admit(parts)
    }
    try {
      if (series.readsClock) this.#setReading(series.nowMs)
    } catch (error) {
      this.#takeBack(parts, admitted)
      throw error
    }
    if (!series.isRefusedBy(admitted)) {
      const decision = this.#decideFrom(admitted, parts, lo, hi, cost, hint, NO_LIMITS)
      // A rule may have changed its record.
      if (!series.isOf(this.engines)) this.#series = this.#newSeries()
      return decision
    }
    parts[admitted] = engines[admitted]!.decidedInSeries(lo, hi, cost)
    this.way = engines[0]!.way
    return this.#refuse(parts, admitted, lo, hi, cost, NO_LIMITS)
  }

  #admit(parts: RulePart[]): RulesDecision {
    if (this.#hasShadow && this.#countShadowed(parts)) this.#tally.admitInShadow()
    else this.#tally.admit()
    this.#countNear(parts)
    return new RulesDecision(this, parts as [RulePart, ...RulePart[]], UNDECIDED)
  }

  /** Any charge of an admission may have left the key near its limit. */
  #countSuspects(decision: RulesDecision): RulesDecision {
    this.#countNear(decision.rules)
    return decision
  }

  /** Counts an admission by the rules to whose limits it has left the key near. */
  #countNear(parts: readonly RulePart[]): void {
    this.#suspects.any = false
    let nearRules = 0
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      if (part.outcome !== Outcome.CHARGED) continue
      const { way, adm, tick, at, limit } = countedOf(part)
      const { near } = this.engines[i]!
      if (!near.isSuspect(adm, tick, limit) || !near.isNear(way, adm, tick, at, limit)) continue
      this.#ofRules[i]!.nearLimit++
      nearRules |= 1 << i
    }
    if (nearRules === 0) return
    this.#tally.nearLimit++
    this.lastNear = nearRules
  }

  /** Whether any rule would have refused an admission. */
  #countShadowed(parts: readonly RulePart[]): boolean {
    let isShadowed = false
    for (let i = 0; i < parts.length; i++) {
      if (parts[i]!.outcome !== Outcome.SHADOWED) continue
      this.#ofRules[i]!.shadowRefused++
      isShadowed = true
    }
    return isShadowed
  }

  #countRefusal(parts: readonly RulePart[], refusing: number): void {
    this.#tally.refuse()
    const ofRule = this.#ofRules[refusing]!
    ofRule.refused++
    if (!isBlocked(parts[refusing]!)) return
    ofRule.blocked++
    this.#tally.blocked++
  }

  /** Lets the first `count` rules take their charges back. */
  #takeBack(parts: RulePart[], count: number): void {
    for (let i = 0; i < count; i++) parts[i] = this.engines[i]!.takeBack(parts[i]!)
  }

  peek(lo: number, hi: number, cost: number, limits = NO_LIMITS): RulesDecision {
    this.takeReading()
    const parts = this.#peekAll(lo, hi, cost, limits)
    const below = indexOfLimitBelow(parts, cost)
    const refusing = below >= 0 ? below : parts.findIndex(({ allowed }) => !allowed)
    return new RulesDecision(this, parts, refusing)
  }

  withoutCharge<T>(decide: () => T): T {
    return this.engines.reduce((inner, engine) => () => engine.withoutCharge(inner), decide)()
  }

  checkMany(fingerprints: Int32Array, costs: Costs, withRemaining: boolean): BatchDecision {
    return decideRulesBatch(this, fingerprints, costs, withRemaining)
  }

  owns(decision: unknown): decision is RulesDecision {
    return RulesDecision.isOf(this, decision)
  }

  /** Returns the most units that any rule gave back: the charge may have left the window of another. */
  giveBack(decision: RulesDecision, units?: number): number {
    if (!hasOutcome(decision, Outcome.CHARGED)) return 0
    this.takeReading() // may throw, and the decision can then be given back later
    let most = 0
    for (const [i, part] of decision.rules.entries()) {
      if (part.outcome !== Outcome.CHARGED) continue
      most = Math.max(most, this.engines[i]!.changes.takeBack(part, units))
    }
    return most
  }

  /** The numbers of decisions and keys are those of the first rule. All others are sums over the rules. */
  statistics(): CountedStatistics {
    const own = this.counted()
    const [first, ...others] = this.engines.map((engine) => engine.statistics())
    const sums = first!
    for (const each of others) {
      for (const name of SUMMED) sums[name] += each[name]
    }
    return { ...sums, own }
  }

  counted(): FigureCounts & RuleCounts {
    const own = this.#tally.own()
    const rules = this.#names.map((name, i) => [name, { admitted: own.admitted, ...this.#ofRules[i]! }])
    return { ...own, rules: Object.fromEntries(rules) }
  }

  close(): void {
    this.flush()
    for (const engine of this.engines) engine.close()
  }

  uncount(decision: Decision, near: number): void {
    this.#tally.uncount(decision, near)
    const { allowed, rule } = decision
    for (const [i, part] of decision.rules.entries()) {
      const ofRule = this.#ofRules[i]!
      if (allowed) {
        if (!verdictOf(part).allowed) ofRule.shadowRefused--
        if (near & (1 << i)) ofRule.nearLimit--
      } else if (part.rule === rule) {
        ofRule.refused--
        if (isBlocked(part)) ofRule.blocked--
      }
    }
  }

  /** Adds the counts of this thread to the shared statistics. */
  flush(): void {
    this.#tally.flush()
  }

  /**
   * A rule refused. The rules before it take their charges back, and the rules after it are peeked at. Those that
   * refuse it, too, may charge it.
   */
  #refuse(
    parts: RulePart[],
    refusing: number,
    lo: number,
    hi: number,
    cost: number,
    limits: Limits,
  ): RulesDecision {
    const { engines } = this
    this.#takeBack(parts, refusing)
    for (let i = refusing + 1; i < engines.length; i++) {
      parts[i] = this.#chargeRefusal(i, engines[i]!.peekSet(lo, hi, cost, limits[i]), lo, hi, cost, limits)
    }
    this.#countRefusal(parts, refusing)
    return new RulesDecision(this, parts as [RulePart, ...RulePart[]], refusing)
  }

  /** With `countRefused`, a rule charges what it refuses itself, also if another rule has refused it first. */
  #chargeRefusal(
    index: number,
    peeked: RulePart,
    lo: number,
    hi: number,
    cost: number,
    limits: Limits,
  ): RulePart {
    const engine = this.engines[index]!
    if (!engine.countsRefused || (peeked.allowed && peeked.outcome !== Outcome.SHADOWED)) return peeked
    const part = engine.checkSet(lo, hi, cost, NO_WAY, limits[index])
    return part.outcome === Outcome.CHARGED ? engine.takeBack(part) : part // another thread has made room
  }

  /** Refuses a cost above a limit, and names that rule. No rule is charged for an admission, even for a moment. */
  #refuseCost(lo: number, hi: number, cost: number, hint: number, limits: Limits): RulesDecision {
    const parts = this.#peekAll(lo, hi, cost, limits)
    const below = indexOfLimitBelow(parts, cost)
    if (below < 0) return this.check(lo, hi, cost, hint, limits) // another thread has raised the limit
    const own = parts.map((part, i) => this.#chargeRefusal(i, part, lo, hi, cost, limits)) as [
      RulePart,
      ...RulePart[],
    ]
    this.way = this.engines[0]!.way
    this.#countRefusal(own, below)
    return new RulesDecision(this, own, below)
  }

  #peekAll(lo: number, hi: number, cost: number, limits: Limits): Parts {
    return this.engines.map((engine, i) => engine.peekSet(lo, hi, cost, limits[i])) as [
      RulePart,
      ...RulePart[],
    ]
  }

  #isAboveLimit(cost: number, limits: Limits): boolean {
    const { engines } = this
    for (let i = 0; i < engines.length; i++) {
      const engine = engines[i]!
      if (!engine.isShadow && cost > (limits[i] ?? engine.limit)) return true
    }
    return false
  }
}

/** The charges that the addon has just made, from the first rule on; undefined if any is to be kept as a decision. */
function chargesByAddon(attempts: readonly RuleAttempt[]): RuleCharge | undefined {
  let charges: RuleCharge | undefined
  for (let i = attempts.length - 1; i >= 0; i--) {
    charges = attempts[i]!.chargeByAddon(charges)
    if (charges === undefined) return undefined
  }
  return charges
}

const SUMMED = ['evicted', 'evictedLive', 'noRoom', 'blocksEvicted', 'damaged', 'lostWays'] as const

/** The index of the first enforced rule with a limit below the cost, or -1. */
function indexOfLimitBelow(parts: Parts, cost: number): number {
  return parts.findIndex((part) => cost > part.limit && wasEnforced(part))
}
