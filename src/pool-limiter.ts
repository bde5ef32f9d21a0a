import type { AsyncLimiter } from './async-limiter.js'
import {
  blockMs,
  checkCallOptions,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkRuleName,
  checkSignal,
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
import { MillraceError } from './core/errors.js'
import { type Inspect, inspectAs } from './core/inspect.js'
import { admitted } from './core/limited.js'
import type { Signal } from './core/on-abort.js'
import type { Size } from './core/sizes.js'
import { countedOf, type UnitDecision } from './core/unit-decision.js'
import { WordWatch } from './core/word-watch.js'
import type { BatchDecision, Costs } from './engines/batch.js'
import type { CallLimit } from './engines/engine.js'
import type { PoolSettings } from './engines/pool.js'
import type { AnyPoolDecision, PoolDecision } from './engines/pool-decision.js'
import { type RuleEngine, ruleEngineOf } from './engines/rule-engine.js'
import { RulesEngine } from './engines/rules-engine.js'
import { type SharedLimiter, shareOf } from './engines/share.js'
import type { Pool } from './engines/unit-pool.js'
import { poolOf } from './engines/unit-rules-pool.js'
import { WaitQueues } from './engines/wait-queues.js'
import type { LimiterFile } from './inline-limiter.js'
import type { LimiterStats } from './limiter.js'
import type {
  CallOptions,
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
import { Op } from './memory/request-ring.js'
import { PoolMember } from './pool-member.js'
import { type AsyncReservation, PoolReservation } from './reservation.js'

/** A decision of either pool. */
type Decided = AnyPoolDecision | UnitDecision<PoolDecision>

/**
 * Decides on the workers of a pool. Every method checks its arguments and hashes its key on the calling
 * thread, and `engines/pool.ts` sends the request.
 */
export class PoolLimiter implements AsyncLimiter {
  readonly #memory: RuleMemory
  readonly #rules: RuleNames
  readonly #clock: Clock
  readonly #file: LimiterFile | undefined
  readonly #keys: KeyReader
  readonly #updates: WordWatch
  readonly #waiters: WaitQueues
  /** Reads the limits and the statistics on this thread. */
  readonly #inline: RuleEngine | RulesEngine
  /** One for each rule. */
  readonly #engines: readonly RuleEngine[]
  readonly #pool: Pool
  #closing: Promise<void> | undefined = undefined
  /** Whether the memory is unmapped. */
  #isReleased = false

  /** @internal @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(memory: RuleMemory, clock: Clock, settings: PoolSettings, file?: LimiterFile) {
    const { arenas, names } = memory
    const [first] = arenas
    this.#memory = memory
    this.#rules = ruleNamesOf(memory)
    this.#clock = clock
    this.#file = file
    this.#keys = new KeyReader(this, first)
    this.#updates = new WordWatch(first.words, HEADER.UPDATES)
    this.#waiters = new WaitQueues(clock, this.#updates)
    this.#inline =
      arenas.length === 1 ? ruleEngineOf(first, names[0], clock) : new RulesEngine(arenas, names, clock)
    this.#engines = this.#inline instanceof RulesEngine ? this.#inline.engines : [this.#inline]
    this.#pool = poolOf(memory, this.#shared(), settings)
  }

  async ready(): Promise<void> {
    await this.#openPool().ready()
  }

  get rule(): LimiterRule {
    return this.rules[0]!
  }

  get rules(): readonly LimiterRule[] {
    this.#openPool()
    return this.#engines.map(({ limit }, i) => ruleOf(this.#memory, i, limit))
  }

  check(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    return this.#request(Op.CHECK, key, cost, options)
  }

  async checkOrThrow(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision> {
    return admitted(await this.check(key, cost, options))
  }

  async reserve(key: Key, cost: number, options?: CheckOptions & CallOptions): Promise<AsyncReservation> {
    this.#openPool()
    checkCost(cost) // it has no default
    const decision = (await this.check(key, cost, options)) as Decided
    return new PoolReservation({
      decision,
      cost,
      mostMore: mostPenalty(this.#rules),
      isGivenBack: () => decision.isGivenBack,
      change: (actualCost) => this.#change(decision, cost, actualCost),
    })
  }

  peek(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    return this.#request(Op.PEEK, key, cost, options)
  }

  async checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions & CallOptions = {},
  ): Promise<BatchDecision> {
    this.#openPool()
    const { fingerprints } = this.#keys.pack(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    checkRemaining(remaining)
    checkSignal(signal)
    const own = ownCosts(costs, fingerprints.length / 2)
    return (await this.#openPool().checkMany(fingerprints, own, remaining, signal)) as BatchDecision
  }

  pack(keys: readonly Key[]): PackedKeys {
    this.#openPool()
    return this.#keys.pack(keys)
  }

  handle(key: string): KeyHandle {
    this.#openPool()
    return this.#keys.handle(key)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    this.#openPool()
    const { cost, limit, signal } = checkWaitOptions(options, this.#rules)
    const { lo, hi } = this.#keys.read(key)
    this.#openPool() // once more: a getter may have closed the limiter
    const request = {
      lo,
      hi,
      decide: () => this.#attempt(lo, hi, cost, limit),
      giveBack: (decision: Decision) => this.#giveBack(decision as Decided),
      neverError: () => neverAdmittedError(cost, rulesWithin(this.rules, limit)),
    }
    return this.#waiters.wait(request, signal)
  }

  async usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): Promise<number> {
    this.#openPool()
    const rule = checkUsageRule(options, this.#memory.names)
    const { windowMs } = this.#memory.arenas[rule]!.shape
    const ms = lastMs === undefined ? windowMs : usageMs(lastMs, windowMs)
    const { lo, hi } = this.#keys.read(key)
    // `#openPool` once more: a getter may have closed the limiter.
    return (await this.#openPool().requestWithMs(Op.USAGE, lo, hi, ms, rule)) as number
  }

  refund(decision: Decision): Promise<number>
  refund(key: Key, cost: number): Promise<number>
  async refund(what: Decision | Key, cost?: number): Promise<number> {
    const pool = this.#openPool()
    if (pool.owns(what)) {
      const { lo, hi } = what
      const given = (await pool.giveBack(what)) as number
      this.#waiters.wake(lo, hi)
      return given
    }
    if (this.#inline.owns(what)) return 0 // a peek of this thread, for a group
    if (isDecision(what)) throw foreignDecisionError(what)
    return this.#requestAndWake(Op.REFUND, what as Key, cost as number)
  }

  async penalize(key: Key, cost: number): Promise<boolean> {
    this.#openPool()
    checkPenalty(cost, this.#rules)
    return (await this.#request<number>(Op.PENALIZE, key, cost)) === 1
  }

  async block(key: Key, ms: Duration): Promise<boolean> {
    const pool = this.#openPool()
    const forMs = blockMs(ms)
    const { lo, hi } = this.#keys.read(key)
    const isBlocked = (await pool.requestWithMs(Op.BLOCK, lo, hi, forMs)) === 1
    this.#waiters.wake(lo, hi) // the new block may end earlier
    return isBlocked
  }

  async unblock(key: Key): Promise<boolean> {
    return (await this.#requestAndWake(Op.UNBLOCK, key)) === 1
  }

  async clear(key: Key): Promise<void> {
    await this.#requestAndWake(Op.CLEAR, key)
  }

  async clearAll(): Promise<void> {
    await this.#openPool().request(Op.CLEAR_ALL, 0, 0, 0)
    this.#updates.check()
  }

  async update(rule: string, change: { limit: Size }): Promise<void> {
    this.#openPool()
    const index = checkRuleName(rule, this.#memory.names)
    const limit = checkUpdate(change, this.#rules.units[index])
    this.#openPool() // once more: a getter may have closed the limiter
    changeLimitOf(this.#memory.arenas, index, limit)
    this.#updates.check()
  }

  share(): SharedLimiter {
    this.#openPool()
    return this.#shared()
  }

  async stats(): Promise<LimiterStats> {
    await this.#openPool().flush()
    return this.#inline.statistics()
  }

  /**
   * The moment at which a charged decision took effect, for a log that judges the limiter
   * (`InlineDecision.effectMs`). The exact reading stays with the worker. It lies between the request and the
   * reply, within the bucket that was charged. Any moment there will do: a window holds the same buckets
   * wherever in them it begins.
   */
  effectMs(decision: Decision, requestedMs: number, repliedMs: number): number {
    const first = countedOf((decision as Decided).rules[0]!) as PoolDecision
    return Math.max(requestedMs, this.#engines[0]!.estimates.effectOf(first, repliedMs))
  }

  /** @internal This limiter as a member of a group. */
  toMember(name: string): PoolMember {
    if (this.#closing !== undefined) throw closedError(`members.${name}`)
    const parts = {
      name,
      memory: this.#memory,
      engines: this.#engines,
      keys: this.#keys,
      waiters: this.#waiters,
      isOpen: () => this.#closing === undefined,
      isReleased: () => this.#isReleased,
    }
    return new PoolMember(parts, this.#inline, ({ lo, hi, cost, limit, isAttempt }) =>
      isAttempt
        ? this.#attempt(lo, hi, cost, limit)
        : (this.#decide(Op.CHECK, lo, hi, cost, limit) as Promise<Decision>),
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#closing !== undefined ? { isClosed: true } : shownRules(this.rules)
    return inspectAs('AsyncLimiter', fields, options, inspect)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#waiters.close(closedError())
    await this.#pool.close()
    this.#inline.close()
    this.#isReleased = this.#file !== undefined
    this.#file?.release()
  }

  #request<T>(op: Op, key: Key, cost: number, options?: CheckOptions & CallOptions): Promise<T> {
    try {
      this.#openPool()
      checkCost(cost)
      if (options !== undefined) return this.#requestBy(options, op, key, cost) as Promise<T>
      const { lo, hi } = this.#keys.read(key)
      if (op === Op.CHECK) return this.#pool.check(lo, hi, cost) as Promise<T>
      return this.#pool.request(op, lo, hi, cost) as Promise<T>
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #requestBy(options: CheckOptions & CallOptions, op: Op, key: Key, cost: number): Promise<unknown> {
    const { limit, signal } = checkCallOptions(options, ['limit', 'signal'], this.#rules)
    const { lo, hi } = this.#keys.read(key)
    return this.#decide(op, lo, hi, cost, limit, signal)
  }

  /** Sends a CHECK or a PEEK by the limit of one call, or by the rule's. */
  #decide(
    op: Op,
    lo: number,
    hi: number,
    cost: number,
    limit: CallLimit | undefined,
    signal?: Signal,
  ): Promise<unknown> {
    const pool = this.#openPool()
    if (limit !== undefined) return pool.requestWithin(limit, op, lo, hi, cost, signal)
    if (op === Op.CHECK && signal === undefined) return pool.check(lo, hi, cost)
    return pool.request(op, lo, hi, cost, signal)
  }

  /** Decides for `wait`: a refusal is never charged. */
  #attempt(lo: number, hi: number, cost: number, limit: CallLimit | undefined): Promise<Decision> {
    const isCharged = this.#memory.arenas.some(({ countRefused }) => countRefused)
    return this.#decide(isCharged ? Op.ATTEMPT : Op.CHECK, lo, hi, cost, limit) as Promise<Decision>
  }

  /** Charges the key of a decision in addition, or gives back a part of the decision's charge. */
  async #change(decision: Decided, cost: number, actualCost: number): Promise<number> {
    const { lo, hi } = decision
    const pool = this.#openPool()
    if (decision.isShadowed) return 0 // it would not have run
    if (actualCost > cost) return (await pool.chargeMore(lo, hi, cost, actualCost)) as number
    const given = (await pool.giveBack(decision, cost - actualCost)) as number
    this.#waiters.wake(lo, hi)
    return 0 - given
  }

  /**
   * Gives back an admission of an aborted `wait()`. Errors of the pool are ignored: no caller is left to
   * receive them.
   */
  #giveBack(decision: Decided): void {
    this.#pool.forceGiveBack(decision).catch((error: unknown) => {
      if (!(error instanceof MillraceError)) throw error
    })
  }

  async #requestAndWake(op: Op, key: Key, cost = 0): Promise<number> {
    const pool = this.#openPool()
    checkCost(cost)
    const { lo, hi } = this.#keys.read(key)
    const changed = (await pool.request(op, lo, hi, cost)) as number
    this.#waiters.wake(lo, hi)
    return changed
  }

  #openPool(): Pool {
    if (this.#closing !== undefined) throw closedError()
    return this.#pool
  }

  #shared(): SharedLimiter {
    return shareOf(this.#memory, this.#clock, this.#file?.place)
  }
}
