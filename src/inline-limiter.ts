import {
  blockMs,
  checkCallOptions,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkRuleName,
  checkUpdate,
  checkUsageRule,
  checkWaitOptions,
  closedError,
  foreignDecisionError,
  isDecision,
  mostPenalty,
  neverAdmittedError,
  ownCosts,
  type RuleNames,
  rulesWithin,
  usageMs,
} from './checks.js'
import type { Clock } from './core/clock.js'
import type { Decision } from './core/decision.js'
import type { Duration } from './core/duration.js'
import { type Inspect, inspectAs } from './core/inspect.js'
import { admitted } from './core/limited.js'
import type { Size } from './core/sizes.js'
import { WordWatch } from './core/word-watch.js'
import type { BatchDecision, Costs } from './engines/batch.js'
import type { CallLimit, Engine, OwnDecision } from './engines/engine.js'
import type { RuleEngine } from './engines/rule-engine.js'
import { type FilePlace, type SharedLimiter, shareOf } from './engines/share.js'
import { WaitQueues } from './engines/wait-queues.js'
import { InlineMember } from './group-member.js'
import type { Limiter, LimiterStats } from './limiter.js'
import type {
  CheckManyOptions,
  CheckOptions,
  LimiterRule,
  UsageOptions,
  WaitOptions,
} from './limiter-options.js'
import { ruleNamesOf, ruleOf, shownRules } from './limiter-rules.js'
import { changeLimitOf, type RuleMemory } from './memory/arenas.js'
import { KeyReader } from './memory/key-reader.js'
import type { Key, KeyHandle, PackedKeys } from './memory/keys.js'
import { HEADER } from './memory/layout.js'
import { InlineReservation, type Reservation } from './reservation.js'

/** The file with the counts of a limiter. */
export interface LimiterFile {
  readonly place: FilePlace
  /** Unmaps the file. Nothing may access the limiter's memory afterwards. */
  release(): void
}

/**
 * Decides on the calling thread. Every method checks its arguments, and an engine decides. `check` is the hot
 * path, so each subclass has its own, for one class of engines: a process may have limiters of both.
 */
export abstract class InlineLimiter<D extends OwnDecision> implements Limiter {
  readonly #memory: RuleMemory
  readonly #rules: RuleNames
  /** One for each rule. */
  readonly #engines: readonly RuleEngine[]
  readonly #clock: Clock
  readonly #keys: KeyReader
  readonly #updates: WordWatch
  readonly #waiters: WaitQueues
  readonly #file: LimiterFile | undefined
  /** Decides by all rules. */
  #engine: Engine<D> | undefined

  /** @internal */
  constructor(
    memory: RuleMemory,
    engines: readonly RuleEngine[],
    engine: Engine<D>,
    clock: Clock,
    file?: LimiterFile,
  ) {
    const [first] = memory.arenas
    this.#memory = memory
    this.#rules = ruleNamesOf(memory)
    this.#engines = engines
    this.#file = file
    this.#clock = clock
    this.#keys = new KeyReader(this, first)
    this.#updates = new WordWatch(first.words, HEADER.UPDATES)
    this.#waiters = new WaitQueues(clock, this.#updates)
    this.#engine = engine
  }

  async ready(): Promise<void> {
    this.#openEngine()
  }

  get rule(): LimiterRule {
    return this.rules[0]!
  }

  get rules(): readonly LimiterRule[] {
    this.#openEngine()
    return this.#engines.map(({ limit }, i) => ruleOf(this.#memory, i, limit))
  }

  abstract check(key: Key, cost?: number, options?: CheckOptions): Decision

  checkOrThrow(key: Key, cost?: number, options?: CheckOptions): Decision {
    return admitted(this.check(key, cost, options))
  }

  reserve(key: Key, cost: number, options?: CheckOptions): Reservation {
    this.#openEngine()
    checkCost(cost) // it has no default
    const decision = this.check(key, cost, options) as D
    return new InlineReservation({
      decision,
      cost,
      mostMore: mostPenalty(this.#rules),
      isGivenBack: () => decision.isGivenBack,
      change: (actualCost) => this.#change(decision, cost, actualCost),
    })
  }

  peek(key: Key, cost = 1, options?: CheckOptions): Decision {
    this.#openEngine()
    checkCost(cost)
    const limit = this.#limitIn(options)
    const { lo, hi } = this.#keys.read(key)
    return this.#openEngine().peek(lo, hi, cost, limit) // open: a getter may have closed the limiter
  }

  checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions = {},
  ): BatchDecision {
    this.#openEngine()
    const { fingerprints } = this.#keys.pack(keys)
    checkOptions(options, ['remaining'])
    const { remaining = false } = options
    checkRemaining(remaining)
    const own = ownCosts(costs, fingerprints.length / 2)
    // `#openEngine` once more: a getter may have closed the limiter.
    return this.#openEngine().checkMany(fingerprints, own, remaining)
  }

  pack(keys: readonly Key[]): PackedKeys {
    this.#openEngine()
    return this.#keys.pack(keys)
  }

  handle(key: string): KeyHandle {
    this.#openEngine()
    return this.#keys.handle(key)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    this.#openEngine()
    const { cost, limit, signal } = checkWaitOptions(options, this.#rules)
    const { lo, hi } = this.#keys.read(key)
    this.#openEngine() // once more: a getter may have closed the limiter
    const request = {
      lo,
      hi,
      decide: () => this.#openEngine().withoutCharge(() => this.#decide(lo, hi, cost, limit)),
      neverError: () => neverAdmittedError(cost, rulesWithin(this.rules, limit)),
    }
    return this.#waiters.wait(request, signal)
  }

  usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): number {
    this.#openEngine()
    const rule = checkUsageRule(options, this.#memory.names)
    const { windowMs } = this.#memory.arenas[rule]!.shape
    const ms = lastMs === undefined ? windowMs : usageMs(lastMs, windowMs)
    const { lo, hi } = this.#keys.read(key)
    this.#openEngine() // once more: a getter may have closed the limiter
    return this.#engines[rule]!.usage(lo, hi, ms)
  }

  refund(decision: Decision): number
  refund(key: Key, cost: number): number
  refund(what: Decision | Key, cost?: number): number {
    const engine = this.#openEngine()
    if (engine.owns(what)) {
      const given = engine.giveBack(what)
      this.#waiters.wake(what.lo, what.hi)
      return given
    }
    if (isDecision(what)) throw foreignDecisionError(what)
    checkCost(cost)
    const { lo, hi } = this.#keys.read(what as Key)
    const refunded = engine.changes.refund(lo, hi, cost)
    this.#waiters.wake(lo, hi)
    return refunded
  }

  penalize(key: Key, cost: number): boolean {
    const engine = this.#openEngine()
    checkPenalty(cost, this.#rules)
    const { lo, hi } = this.#keys.read(key)
    return engine.changes.penalize(lo, hi, cost)
  }

  block(key: Key, ms: Duration): boolean {
    const engine = this.#openEngine()
    const forMs = blockMs(ms)
    const { lo, hi } = this.#keys.read(key)
    const isBlocked = engine.changes.block(lo, hi, forMs)
    this.#waiters.wake(lo, hi) // the new block may end earlier
    return isBlocked
  }

  unblock(key: Key): boolean {
    const engine = this.#openEngine()
    const { lo, hi } = this.#keys.read(key)
    const unblocked = engine.changes.unblock(lo, hi)
    this.#waiters.wake(lo, hi)
    return unblocked
  }

  clear(key: Key): void {
    const engine = this.#openEngine()
    const { lo, hi } = this.#keys.read(key)
    engine.changes.clear(lo, hi)
    this.#waiters.wake(lo, hi)
  }

  clearAll(): void {
    this.#openEngine().changes.clearAll()
    this.#updates.check()
  }

  update(rule: string, change: { limit: Size }): void {
    this.#openEngine()
    const index = checkRuleName(rule, this.#memory.names)
    const limit = checkUpdate(change, this.#rules.units[index])
    this.#openEngine() // once more: a getter may have closed the limiter
    changeLimitOf(this.#memory.arenas, index, limit)
    this.#updates.check()
  }

  share(): SharedLimiter {
    this.#openEngine()
    return shareOf(this.#memory, this.#clock, this.#file?.place)
  }

  stats(): LimiterStats {
    return this.#openEngine().statistics()
  }

  async close(): Promise<void> {
    const engine = this.#engine
    engine?.close()
    this.#engine = undefined
    this.#waiters.close(closedError()) // before the release: it reads the memory
    if (engine !== undefined) this.#file?.release()
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#engine === undefined ? { isClosed: true } : shownRules(this.rules)
    return inspectAs('Limiter', fields, options, inspect)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** This limiter as a member of a group. @internal */
  toMember(name: string): InlineMember<D> {
    const engine = this.#engine
    if (engine === undefined) throw closedError(`members.${name}`)
    const isOpen = () => this.#engine !== undefined
    const parts = {
      name,
      memory: this.#memory,
      engines: this.#engines,
      keys: this.#keys,
      waiters: this.#waiters,
      isOpen,
      isReleased: () => this.#file !== undefined && !isOpen(),
    }
    return new InlineMember(parts, engine, (...change) => this.#change(...change))
  }

  /** Decides by the options of a call. Each subclass's `check` calls it, off its hot path. @internal */
  protected checkBy(options: CheckOptions, key: Key, cost: number): Decision {
    const limit = this.#limitIn(options)
    if (typeof key === 'string') {
      const { lo, hi } = this.#keys.read(key)
      return this.#decide(lo, hi, cost, limit)
    }
    const handle = this.#keys.owned(key)
    const decision = this.#decide(handle.lo, handle.hi, cost, limit, handle.way)
    handle.way = decision.way
    return decision
  }

  /** @internal */
  protected keyReader(): KeyReader {
    return this.#keys
  }

  /** Decides by the limit of one call, or by those of the rules. */
  #decide(lo: number, hi: number, cost: number, limit: CallLimit | undefined, hint?: number): D {
    const engine = this.#openEngine()
    if (limit === undefined) return engine.checkNow(lo, hi, cost, hint)
    return engine.checkWithin(limit, lo, hi, cost, hint)
  }

  /** Charges the key of a decision in addition, or gives back a part of the decision's charge. */
  #change(decision: D, cost: number, actualCost: number): number {
    const { lo, hi } = decision
    const engine = this.#openEngine()
    if (decision.isShadowed) return 0 // it would not have run
    if (actualCost > cost) return engine.changes.chargeMore(lo, hi, cost, actualCost)
    const given = engine.giveBack(decision, cost - actualCost)
    this.#waiters.wake(lo, hi)
    return 0 - given
  }

  /** The limit of one call, if its options have one. */
  #limitIn(options: CheckOptions | undefined): CallLimit | undefined {
    return options === undefined ? undefined : checkCallOptions(options, ['limit'], this.#rules).limit
  }

  #openEngine(): Engine<D> {
    if (this.#engine === undefined) throw closedError()
    return this.#engine
  }
}
