import { createRequire } from 'node:module'
import { ADMITTED, type Algorithm, FULL, GONE, SUSPECT, UNDECIDED } from '../../algorithms/algorithm.js'
import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import type { Clock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import type { FigureCounts, RuleCounts } from '../../core/decision-counts.js'
import { FiguresDemand } from '../../core/figures-demand.js'
import { InlineDecision, isRefusal, Outcome } from '../../core/inline-decision.js'
import { lazily } from '../../core/lazily.js'
import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { isUncounted } from '../../core/uncounted-limit.js'
import { changesRefusals, countsRefusals, isEnforced } from '../../core/verdict.js'
import { count } from '../../memory/counters.js'
import { HEADER } from '../../memory/layout.js'
import { changeLimit, type PresentRule } from '../../memory/limit.js'
import type { Arena } from '../../memory/records.js'
import { readStatistics } from '../../memory/statistics.js'
import type { Table } from '../../memory/table.js'
import type { Words } from '../../memory/words.js'
import { addonForArena, chooseAddon } from '../../native/addon.js'
import { NativeBatches } from '../../native/batches.js'
import { STATUS } from '../../native/native-params.js'
import { NativeSingle } from '../../native/single.js'
import { unlessDamaged } from '../damage.js'
import { type CountedStatistics, type Engine, sharedIn } from '../engine.js'
import { decidedUncounted } from '../uncounted.js'
import { DecisionEstimates, keepDetails, needsDetails } from './decision-estimates.js'
import { Era } from './era.js'
import type { KeyChanges } from './key-changes.js'
import { NearLimit } from './near-limit.js'
import { RuleAttempt } from './rule-attempt.js'
import type { SavedCharge } from './saved-charge.js'
import { Tally } from './tally.js'
import { type View, Views } from './views.js'

const require = createRequire(import.meta.url)
const batches = lazily(() => require('./batch.js') as typeof import('./batch.js'))
export const keyChanges = lazily(() => require('./key-changes.js') as typeof import('./key-changes.js'))

const NO_WAY = -1
/** The limit of one call, if it has one. */
type Limit = number | undefined

/**
 * Decides on the calling thread. Keys are fingerprints, and the facade has checked all arguments. Every
 * method reads the clock, except `check` and `decide`, whose callers have read it. It finds the key's way,
 * and starts over if another key has taken the way meanwhile. It counts by the present record. A change of
 * the record replaces what depends on it (`#use`).
 */
export class InlineEngine implements Engine<InlineDecision> {
  readonly ruleName: string
  /** Whether the rule is not enforced. */
  readonly isShadow: boolean
  readonly reading: Reading
  readonly addon = chooseAddon()
  #batches: NativeBatches | undefined
  /** The way of the last decision, or -1: a hint for the next one on the same key. */
  way = NO_WAY
  /** The arena by the present record. */
  arena: Arena
  readonly #words: Words
  /** How this thread counts by each record. */
  readonly views: Views
  readonly #rule: PresentRule
  /** The limit of a call that has one, while it is decided. */
  #ownLimit: Limit
  readonly #call: Int32Array | undefined
  /** Whether the memory may be unmapped. */
  readonly #memory = { isReleased: false }
  #table: Table
  #algorithm: Algorithm
  #single: NativeSingle | undefined
  #changes: KeyChanges | undefined
  estimates!: DecisionEstimates
  /** Whether the figures of decisions are read. */
  readonly demand = new FiguresDemand()
  era!: Era
  readonly attempt: RuleAttempt
  readonly near: NearLimit
  readonly #tally: Tally
  lastNear = 0
  /** @see changesRefusals */
  readonly #changesRefusals: boolean
  countsRefused: boolean

  /**
   * With `call`, memory for calls of the addon, `RulesEngine` reads the clock and counts the decisions.
   * @param nearLimit above this share of its limit, a key is near it; `Infinity`: that is not counted
   */
  constructor(arena: Arena, ruleName: string, clock: Clock, nearLimit = Infinity, call?: Int32Array) {
    this.ruleName = ruleName
    this.isShadow = !isEnforced(arena)
    this.#changesRefusals = changesRefusals(arena)
    this.countsRefused = countsRefusals(arena)
    if (this.countsRefused) keyChanges() // see RulesEngine
    this.#words = arena.words
    this.#call = call
    this.#tally = new Tally(call === undefined ? arena : undefined, this.isShadow)
    this.near = new NearLimit(nearLimit)
    this.views = new Views(arena, clock, (view) => this.#use(view))
    this.reading = this.views.reading
    this.#rule = this.views.rule
    this.#rule.onLimit = (limit) => this.near.goByRule(limit)
    const { present } = this.views
    this.arena = arena
    this.#table = present.table
    this.#algorithm = present.algorithm
    this.attempt = new RuleAttempt(this, this.#rule, present)
    this.#use(present)
  }

  /** Counts by this record from here on. */
  #use(view: View): void {
    const { arena, table, algorithm, insertion } = view
    const { reading } = this
    const single = NativeSingle.for(this.addon, arena, reading, this.demand, this.#call)
    this.#batches = undefined
    this.arena = arena
    this.#table = table
    this.#algorithm = algorithm
    this.#single = single
    this.near.use(algorithm, arena, reading, single)
    this.attempt.use(view, single)
    this.estimates = new DecisionEstimates(arena, table, algorithm, insertion, reading, single, this.#memory)
    const { epochs } = algorithm
    this.era = new Era(this, epochs)
    epochs.onEra = () => {
      this.era = new Era(this, epochs)
    }
  }

  /** Decides large batches; undefined without the addon, and if TypeScript handles all refusals. */
  get native(): NativeBatches | undefined {
    if (this.#changesRefusals) return undefined
    this.#batches ??= NativeBatches.for(this.addon, this.arena, this.reading.clock)
    return this.#batches
  }

  /** Refunds, penalties and blocks. */
  get changes(): KeyChanges {
    this.#changes ??= new (keyChanges().KeyChanges)(this.views)
    return this.#changes
  }

  /** The present limit. Goes on with the present record. */
  get limit(): number {
    return this.#rule.readLimit()
  }

  set limit(limit: number) {
    changeLimit(this.#words, limit)
  }

  /** Decides and charges, by the reading that the caller has just taken. `hint` is the last way of the key, or -1. */
  check(lo: number, hi: number, cost: number, hint: number, limit = this.limit): InlineDecision {
    return this.#decisionOf(lo, hi, cost, limit, this.decide(lo, hi, cost, limit, hint))
  }

  /** Decides and charges by a limit of this call, if it has one, by the reading that the caller has just taken. */
  #checkBy(limit: Limit, lo: number, hi: number, cost: number, hint: number): InlineDecision {
    if (limit === undefined) return this.check(lo, hi, cost, hint)
    this.views.refresh()
    this.#ownLimit = limit
    this.near.goBy(limit)
    try {
      return this.check(lo, hi, cost, hint, limit)
    } finally {
      this.#ownLimit = undefined
      this.near.goBy()
    }
  }

  /** Reads the clock, decides and charges. The addon, if it is loaded, decides keys that are in the table. */
  checkNow(lo: number, hi: number, cost: number, hint = NO_WAY): InlineDecision {
    const single = this.#single
    if (single === undefined) this.reading.take()
    else if (single.decides(lo, hi, cost, hint)) return this.#nativeDecisionOf(single, lo, hi, cost)
    if (this.demand.left > 0) return this.#checkWithFigures(undefined, lo, hi, cost, hint)
    return this.check(lo, hi, cost, hint)
  }

  /** Reads the clock, decides and charges by a limit of this call. */
  checkWithin(limit: number, lo: number, hi: number, cost: number, hint = NO_WAY): InlineDecision {
    if (isUncounted(limit)) return decidedUncounted(this.peek(lo, hi, 0), limit, cost, this, this.#tally)
    const single = this.#single
    if (single === undefined) this.reading.take()
    else if (single.decidesWithin(limit, lo, hi, cost, hint))
      return this.#nativeDecisionOf(single, lo, hi, cost)
    if (this.demand.left > 0) return this.#checkWithFigures(limit, lo, hi, cost, hint)
    return this.#checkBy(limit, lo, hi, cost, hint)
  }

  /** Decides and charges by the last reading, and computes the figures. */
  #checkWithFigures(limit: Limit, lo: number, hi: number, cost: number, hint: number): InlineDecision {
    this.demand.left--
    const made = this.#checkBy(limit, lo, hi, cost, hint)
    this.estimates.giveFigures(made)
    return made
  }

  /** @see RuleAttempt.touch */
  touch(lo: number, hint: number): number {
    return this.attempt.touch(hint >= 0 ? hint : this.#table.home(lo))
  }

  /** Decides and charges as one of several rules, by the reading that the caller has set. */
  checkSet(lo: number, hi: number, cost: number, hint: number, limit: Limit): InlineDecision {
    if (limit !== undefined && isUncounted(limit))
      return decidedUncounted(this.peekSet(lo, hi, 0), limit, cost, this, this.#tally)
    const single = this.#single
    if (single?.decidesNow(lo, hi, cost, hint, limit)) return this.#nativeDecisionOf(single, lo, hi, cost)
    if (this.demand.left > 0) return this.#checkWithFigures(limit, lo, hi, cost, hint)
    return this.#checkBy(limit, lo, hi, cost, hint)
  }

  /** What the addon has decided for `RulesEngine`, in the memory of this rule's calls. */
  decidedInSeries(lo: number, hi: number, cost: number): InlineDecision {
    return this.#nativeDecisionOf(this.#single!, lo, hi, cost)
  }

  /** Runs a decision, an attempt of `wait`. Its refusal is not charged, also with `countRefused`. */
  withoutCharge<T>(decide: () => T): T {
    const counts = this.countsRefused
    this.countsRefused = false
    try {
      return decide()
    } finally {
      this.countsRefused = counts
    }
  }

  #decisionOf(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): InlineDecision {
    const { way } = this
    if (way < 0) return this.#newKeyDecisionOf(lo, hi, cost, limit, outcome)
    const { chargedTick, chargedStamp, lastAdm, blockMask } = this.#algorithm
    const { nowMs } = this.reading
    const at = this.#keptReading(nowMs)
    // biome-ignore format: one line
    const made = new InlineDecision(this.era, lo, hi, cost, limit, at, outcome, way, chargedTick, chargedStamp, lastAdm)
    if (needsDetails(at, nowMs, lastAdm, blockMask))
      keepDetails(made, at, nowMs, this.#algorithm.lastUntil, blockMask)
    return made
  }

  #nativeDecisionOf(single: NativeSingle, lo: number, hi: number, cost: number): InlineDecision {
    const { status, way, limit, nowMs, chargedTick, chargedStamp, lastAdm } = single
    const outcome = this.#finish(way, status & STATUS.DONE ? ADMITTED : FULL, lo, hi, cost, limit, lastAdm)
    const at = this.#keptReading(nowMs)
    // biome-ignore format: one line
    const made = new InlineDecision(this.era, lo, hi, cost, limit, at, outcome, way, chargedTick, chargedStamp, lastAdm)
    if (status >= STATUS.FIGURES || needsDetails(at, nowMs, lastAdm, this.#algorithm.blockMask))
      this.#complete(made, single, at, nowMs)
    return made
  }

  /** Counts a suspect, if it has left its key near the limit. Of several rules, `RulesEngine` counts. */
  #countNear(way: number, adm: number, tick: number, at: number, limit: number): void {
    if (this.#call !== undefined || !this.near.isNear(way, adm, tick, at, limit)) return
    this.#tally.nearLimit++
    this.lastNear = 1
  }

  #complete(made: InlineDecision, single: NativeSingle, at: number, nowMs: number): void {
    keepDetails(made, at, nowMs, single.lastUntil, this.#algorithm.blockMask)
    const { status, way, lastAdm, chargedTick, limit } = single
    if (status & STATUS.FIGURES) single.giveFigures(made)
    if (!(status & STATUS.SUSPECT)) return
    if (this.near.isSuspect(lastAdm, chargedTick, limit))
      this.#countNear(way, lastAdm, chargedTick, at, limit)
  }

  /** The decision on a key without a way. Its figures can't be computed later from the table. */
  #newKeyDecisionOf(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): InlineDecision {
    if (outcome === Outcome.OUTDATED) return this.check(lo, hi, cost, NO_WAY, this.#ownLimit ?? this.limit)
    const figures = this.estimates.ofNewKey(lo, hi, cost, limit, outcome)
    const { nowMs } = this.reading
    // biome-ignore format: one line
    const made = new InlineDecision(this.era, lo, hi, cost, limit, nowMs, outcome, NO_WAY, 0, 0, 0)
    made.keep(figures)
    return made
  }

  /** The reading that a decision keeps: the whole millisecond, a small integer for 24 days, if figures allow it. */
  #keptReading(nowMs: number): number {
    return this.#algorithm.hasWholeMs ? Math.floor(nowMs) : nowMs
  }

  /** Decides and charges: `way` is then its way, or -1. OUTDATED: another record holds, and nothing was charged. */
  decide(lo: number, hi: number, cost: number, limit: number, hint: number): Outcome {
    const way = hint >= 0 ? hint : this.#table.guess(lo, hi)
    if (way >= 0 && cost > 0 && cost <= limit) {
      const found = this.#algorithm.attempt(way, lo, hi, cost, limit, this.reading)
      if (found !== UNDECIDED) return this.#finish(way, found, lo, hi, cost, limit, this.#algorithm.lastAdm)
    }
    return this.#decideByLookup(way, lo, hi, cost, limit)
  }

  /** Decides what the attempt on the guessed way did not. */
  #decideByLookup(guess: number, lo: number, hi: number, cost: number, limit: number): Outcome {
    const decide = () => this.#lookUpAndDecide(guess, lo, hi, cost, limit)
    return unlessDamaged(this.#words, undefined, decide) ?? this.#giveUp()
  }

  #outdated(): Outcome {
    this.way = NO_WAY
    return Outcome.OUTDATED
  }

  #giveUp(): Outcome {
    this.way = NO_WAY
    this.estimates.hasGivenUp = true
    return this.#tally.count(Outcome.NO_ROOM)
  }

  /** Looks the key up, and inserts a new one. */
  #lookUpAndDecide(guess: number, lo: number, hi: number, cost: number, limit: number): Outcome {
    const { arena } = this
    if (cost === 0 || cost > limit) return this.#decideUncharged(lo, hi, cost)
    const table = this.#table
    let way = guess >= 0 && table.isNamed(guess, lo, hi) ? guess : this.views.findLive(lo, hi)
    for (let tries = 0; ; tries = again(tries)) {
      if (this.arena !== arena) return this.#outdated()
      if (way < 0) {
        if (!this.views.present.insertion.insert(lo, hi)) return this.#decideWithoutRoom()
      } else {
        const algorithm = this.#algorithm
        const found = algorithm.decide(way, lo, hi, cost, limit, this.reading)
        if (found !== GONE) return this.#finish(way, found, lo, hi, cost, limit, algorithm.lastAdm)
      }
      way = this.views.findLive(lo, hi)
    }
  }

  /** Decides, but charges and inserts nothing. */
  peek(lo: number, hi: number, cost: number, ownLimit?: number): InlineDecision {
    this.reading.take()
    return this.peekSet(lo, hi, cost, ownLimit)
  }

  /** Decides by the reading that the caller has set, as one of several rules, but charges and inserts nothing. */
  peekSet(lo: number, hi: number, cost: number, ownLimit?: number): InlineDecision {
    if (ownLimit !== undefined && isUncounted(ownLimit))
      return decidedUncounted(this.peekSet(lo, hi, 0), ownLimit, cost, this)
    for (let tries = 0; ; tries = again(tries)) {
      const limit = ownLimit ?? this.limit
      const { arena } = this
      this.way = this.views.lookUp(lo, hi)
      const outcome = this.views.outcomeOf(this.way, lo, hi, cost, limit)
      // The limit belongs to another record, or another thread has converted the cell.
      if (this.arena !== arena || outcome === Outcome.OUTDATED) continue
      const isShadowed = this.isShadow && isRefusal(outcome)
      return this.#decisionOf(lo, hi, cost, limit, isShadowed ? Outcome.SHADOWED : outcome)
    }
  }

  /** Takes an admission back, because another rule has refused. Returns one that charged nothing. */
  takeBack(admitted: InlineDecision): InlineDecision {
    const { lo, hi, cost, limit, outcome } = admitted
    if (isUncounted(limit)) return admitted
    if (outcome === Outcome.CHARGED) this.changes.takeBack(admitted)
    this.way = this.views.lookUp(lo, hi)
    return this.#decisionOf(lo, hi, cost, limit, outcome === Outcome.SHADOWED ? outcome : Outcome.UNCOUNTED)
  }

  owns(decision: unknown): decision is InlineDecision {
    return InlineDecision.is(decision) && decision.engine === this
  }

  restored(saved: SavedCharge, lo: number, hi: number, cost: number): InlineDecision {
    const [outcome, limit, at, way, tick, stamp, adm] = saved
    const own = limit ?? Number.POSITIVE_INFINITY
    return new InlineDecision(this.era, lo, hi, cost, own, at, outcome, way, tick, stamp, adm)
  }

  giveBack(decision: InlineDecision, units?: number): number {
    return this.changes.giveBack(decision, units)
  }

  checkMany(fingerprints: Int32Array, costs: Costs, withRemaining: boolean): BatchDecision {
    return batches().decideBatch(this, fingerprints, costs, withRemaining)
  }

  usage(lo: number, hi: number, lastMs: number): number {
    const single = this.#single
    if (single === undefined) this.reading.take()
    const answer = single?.usage(lo, hi, lastMs) ?? -1
    return answer >= 0 ? answer : this.views.usage(lo, hi, lastMs)
  }

  /** Where the last decision charged, and what it left. */
  get last(): Pick<
    Algorithm,
    'chargedTick' | 'chargedStamp' | 'lastAdm' | 'lastUntil' | 'blockMask' | 'receipt'
  > {
    return this.#algorithm
  }

  /** How many refusals of blocked keys it has counted. */
  get blocked(): number {
    return this.#tally.blocked
  }

  counted(): FigureCounts & RuleCounts {
    const own = this.#tally.own()
    return { ...own, rules: { [this.ruleName]: own } }
  }

  statistics(): CountedStatistics {
    const own = this.counted()
    const statistics = readStatistics(this.arena)
    const native = addonForArena(this.addon, this.arena) ? 'addon' : 'none'
    return { ...statistics, native, own, shared: sharedIn(statistics) }
  }

  tally(allowed: number, denied: number, shadowDenied = 0): void {
    this.#tally.add(allowed, denied, shadowDenied)
  }

  uncount(decision: Decision, near: number): void {
    this.#tally.uncount(decision, near)
  }

  tallyBlocked(refused: number): void {
    this.#tally.blocked += refused
  }

  tallyNear(admitted: number): void {
    this.#tally.nearLimit += admitted
  }

  close(): void {
    this.flush()
    if (!(this.arena.buffer instanceof SharedArrayBuffer)) this.#memory.isReleased = true
  }

  flush(): void {
    this.#tally.flush()
  }

  /** Admits cost 0 unless the key is blocked, refuses a cost above the limit, and changes nothing. */
  #decideUncharged(lo: number, hi: number, cost: number): Outcome {
    const { arena } = this
    this.way = this.views.lookUp(lo, hi)
    if (this.arena !== arena) return this.#outdated()
    const isBlocked = this.views.isBlocked(this.way)
    if (isBlocked && !this.isShadow) this.#tally.blocked++
    return this.#tally.count(cost > 0 || isBlocked ? Outcome.REFUSED : Outcome.UNCOUNTED)
  }

  #decideWithoutRoom(): Outcome {
    this.way = NO_WAY
    count(this.#words, HEADER.NO_ROOM, 1)
    return this.#tally.count(this.arena.onFull === 'allow' ? Outcome.UNCOUNTED : Outcome.NO_ROOM)
  }

  /** @param adm the admission word that the decision has left or found */
  #finish(
    way: number,
    found: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    adm: number,
  ): Outcome {
    this.way = way
    if (found !== ADMITTED) {
      if (found !== SUSPECT) return this.#refuse(way, lo, hi, cost, limit, adm)
      this.#countNear(way, adm, this.#algorithm.chargedTick, this.reading.nowMs, limit)
    }
    this.#tally.admit()
    return Outcome.CHARGED
  }

  #refuse(way: number, lo: number, hi: number, cost: number, limit: number, adm: number): Outcome {
    const { blockMask } = this.#algorithm
    if ((adm & blockMask) === blockMask && !this.isShadow) this.#tally.blocked++
    if (this.#changesRefusals) return this.#refuseByOptions(way, lo, hi, cost, limit)
    this.#tally.refuse()
    return Outcome.REFUSED
  }

  /** Refuses by a rule that charges or allows what it refuses. */
  #refuseByOptions(way: number, lo: number, hi: number, cost: number, limit: number): Outcome {
    // The figures of the decision are then those of the cell with this charge.
    if (this.countsRefused && this.changes.penalizeWay(way, lo, hi, cost, limit))
      this.#algorithm.observe(way, lo, hi)
    return this.#tally.count(Outcome.REFUSED)
  }
}
