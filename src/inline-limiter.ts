import {
  blockMs,
  checkCallOptions,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkUpdate,
  checkWaitOptions,
  closedError,
  foreignDecisionError,
  invalidCostError,
  isDecision,
  neverAdmittedError,
  ownCosts,
  usageMs,
} from './checks.js'
import type { Clock } from './core/clock.js'
import { type Decision, InlineDecision, Outcome } from './core/decision.js'
import type { Duration } from './core/duration.js'
import { type Inspect, inspectAs } from './core/inspect.js'
import { admitted } from './core/limited.js'
import { WordWatch } from './core/word-watch.js'
import { type BatchDecision, type Costs, decideBatch } from './engines/batch.js'
import { InlineEngine } from './engines/inline.js'
import { type FilePlace, type SharedLimiter, shareOf } from './engines/share.js'
import { WaitQueues } from './engines/wait-queues.js'
import type { Limiter, LimiterStats } from './limiter.js'
import type { CheckManyOptions, CheckOptions, LimiterRule, WaitOptions } from './limiter-options.js'
import type { Arena } from './memory/arena.js'
import type { Hasher } from './memory/hash.js'
import { KeyReader } from './memory/key-reader.js'
import { checkKeyString, type Key, type KeyHandle, MAX_KEY_LENGTH, type PackedKeys } from './memory/keys.js'
import { HEADER } from './memory/layout.js'
import { InlineReservation, type Reservation } from './reservation.js'

export function ruleOf({ shape, edge }: Arena, name: string, limit: number): LimiterRule {
  const { windowMs, buckets } = shape
  return { name, limit, windowMs, granularityMs: windowMs / buckets, edge }
}

/** The file with the counts of a limiter. */
export interface LimiterFile {
  readonly place: FilePlace
  /** Unmaps the file. Nothing may access the limiter's memory afterwards. */
  release(): void
}

/**
 * Decides on the calling thread. Every method checks its arguments, and `engines/inline.ts` decides by the
 * algorithm in `algorithms/sliding-window.ts`.
 */
export class InlineLimiter implements Limiter {
  readonly #arena: Arena
  readonly #clock: Clock
  readonly #keys: KeyReader
  readonly #hasher: Hasher
  readonly #updates: WordWatch
  readonly #waiters: WaitQueues
  readonly #ruleName: string
  readonly #file: LimiterFile | undefined
  #engine: InlineEngine | undefined

  /** @internal */
  constructor(arena: Arena, ruleName: string, clock: Clock, file?: LimiterFile) {
    this.#arena = arena
    this.#file = file
    this.#clock = clock
    this.#ruleName = ruleName
    this.#keys = new KeyReader(this, arena)
    this.#hasher = this.#keys.hasher
    this.#updates = new WordWatch(arena.words, HEADER.UPDATES)
    this.#waiters = new WaitQueues(clock, this.#updates)
    this.#engine = new InlineEngine(arena, ruleName, clock)
  }

  async ready(): Promise<void> {
    this.#openEngine()
  }

  get rule(): LimiterRule {
    return ruleOf(this.#arena, this.#ruleName, this.#openEngine().limit)
  }

  check(key: Key, cost = 1, options?: CheckOptions): Decision {
    const engine = this.#engine
    if (engine === undefined) throw closedError()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCostError(cost)
    if (options !== undefined) return this.#checkBy(options, key, cost)
    if (typeof key === 'string') {
      if (key.length === 0 || key.length > MAX_KEY_LENGTH) checkKeyString(key, 'key')
      const hasher = this.#hasher
      hasher.hash(key)
      return engine.checkNow(hasher.lo, hasher.hi, cost)
    }
    const handle = this.#keys.owned(key)
    const decision = engine.checkNow(handle.lo, handle.hi, cost, handle.way)
    if (handle.way !== engine.way) handle.way = engine.way // a store dirties its cache line
    return decision
  }

  checkOrThrow(key: Key, cost?: number, options?: CheckOptions): Decision {
    return admitted(this.check(key, cost, options))
  }

  reserve(key: Key, cost: number, options?: CheckOptions): Reservation {
    this.#openEngine()
    checkCost(cost) // it has no default
    const decision = this.check(key, cost, options) as InlineDecision
    return new InlineReservation({
      decision,
      cost,
      isGivenBack: () => decision.outcome === Outcome.GIVEN_BACK,
      change: (units) => this.#change(decision, units),
    })
  }

  peek(key: Key, cost = 1, options?: CheckOptions): Decision {
    this.#openEngine()
    checkCost(cost)
    const limit = limitIn(options)
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
    return decideBatch(this.#openEngine(), fingerprints, own, remaining)
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
    const { cost, limit, signal } = checkWaitOptions(options)
    const { lo, hi } = this.#keys.read(key)
    this.#openEngine() // once more: a getter may have closed the limiter
    const request = {
      lo,
      hi,
      decide: () => this.#decide(lo, hi, cost, limit),
      neverError: () => neverAdmittedError(cost, limit ?? this.#openEngine().limit),
    }
    return this.#waiters.wait(request, signal)
  }

  usage(key: Key, lastMs: Duration = this.#arena.shape.windowMs): number {
    const engine = this.#openEngine()
    const ms = usageMs(lastMs, this.#arena.shape.windowMs)
    const { lo, hi } = this.#keys.read(key)
    return engine.usage(lo, hi, ms)
  }

  refund(decision: Decision): number
  refund(key: Key, cost: number): number
  refund(what: Decision | Key, cost?: number): number {
    const engine = this.#openEngine()
    if (what instanceof InlineDecision) {
      if (what.engine !== engine) throw foreignDecisionError(what)
      const given = engine.changes.giveBack(what)
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
    checkPenalty(cost)
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

  update(rule: string, change: { limit: number }): void {
    this.#openEngine()
    const limit = checkUpdate(rule, this.#ruleName, change)
    this.#openEngine().limit = limit // once more: a getter may have closed the limiter
    this.#updates.check()
  }

  share(): SharedLimiter {
    this.#openEngine()
    return shareOf(this.#arena, this.#ruleName, this.#clock, this.#file?.place)
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
    const fields = this.#engine === undefined ? { isClosed: true } : this.rule
    return inspectAs('Limiter', fields, options, inspect)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #checkBy(options: CheckOptions, key: Key, cost: number): Decision {
    const limit = limitIn(options)
    if (typeof key === 'string') {
      const { lo, hi } = this.#keys.read(key)
      return this.#decide(lo, hi, cost, limit)
    }
    const handle = this.#keys.owned(key)
    const decision = this.#decide(handle.lo, handle.hi, cost, limit, handle.way)
    handle.way = decision.way
    return decision
  }

  /** Decides by the limit of one call, or by the rule's. */
  #decide(lo: number, hi: number, cost: number, limit: number | undefined, hint?: number): InlineDecision {
    const engine = this.#openEngine()
    if (limit === undefined) return engine.checkNow(lo, hi, cost, hint)
    return engine.checkWithin(limit, lo, hi, cost, hint)
  }

  /** Charges the key of a decision in addition, or below 0 gives back a part of the decision's charge. */
  #change(decision: InlineDecision, units: number): number {
    const { lo, hi } = decision
    const { changes } = this.#openEngine()
    if (units > 0) return changes.penalize(lo, hi, units) ? units : 0
    const given = changes.giveBack(decision, -units)
    this.#waiters.wake(lo, hi)
    return 0 - given
  }

  #openEngine(): InlineEngine {
    if (this.#engine === undefined) throw closedError()
    return this.#engine
  }
}

/** The limit of one call, if its options have one. */
function limitIn(options: CheckOptions | undefined): number | undefined {
  return options === undefined ? undefined : checkCallOptions(options, ['limit']).limit
}
