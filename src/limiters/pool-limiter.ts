import type { AsyncLimiter } from '../api/async-limiter.js'
import type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  RuleChange,
  UsageOptions,
  WaitOptions,
} from '../api/call-options.js'
import {
  blockMs,
  checkCallOptions,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkSignal,
  closedError,
  foreignDecisionError,
  isDecision,
  mostPenalty,
  ownCosts,
} from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import { type AsyncReservation, PoolReservation } from '../api/reservation.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { Outcome } from '../core/inline-decision.js'
import { admitted } from '../core/limited.js'
import { hasOutcome, shadowedRules } from '../core/rules-decision.js'
import { countsRefusals } from '../core/verdict.js'
import type { CallLimit } from '../engines/engine.js'
import { type RuleEngine, ruleEngineOf } from '../engines/inline/rule-engine.js'
import { RulesEngine } from '../engines/inline/rules-engine.js'
import type { PoolEngine, PoolSettings } from '../engines/pool/pool.js'
import type { AnyPoolDecision } from '../engines/pool/pool-decision.js'
import type { RequestOptions } from '../engines/pool/request.js'
import { poolOf } from '../engines/pool/unit-pool.js'
import type { RuleMemory } from '../memory/arenas.js'
import type { KeyReader } from '../memory/key-reader.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { Op } from '../memory/request-ring.js'
import { BaseLimiter, type LimiterFile } from './base-limiter.js'
import { PoolMember } from './pool-member.js'

/**
 * Decides on the workers of a pool. Every method checks its arguments and hashes its key on the calling
 * thread, and `engines/pool/pool.ts` sends the request.
 */
export class PoolLimiter extends BaseLimiter implements AsyncLimiter {
  readonly #keys: KeyReader
  /** Reads the limits and the statistics on this thread. */
  readonly #inline: RuleEngine | RulesEngine
  readonly #pool: PoolEngine
  #closing: Promise<void> | undefined = undefined
  #isReleased = false

  /** @internal @throws MillraceError `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_BUNDLED` */
  constructor(memory: RuleMemory, clock: Clock, settings: PoolSettings, file?: LimiterFile) {
    const { arenas, names } = memory
    const inline =
      arenas.length === 1 ? ruleEngineOf(arenas[0], names[0], clock) : new RulesEngine(arenas, names, clock)
    super(memory, inline instanceof RulesEngine ? inline.engines : [inline], clock, file)
    this.#keys = this.parts.keys
    this.#inline = inline
    this.#pool = poolOf(memory, this.share(), settings)
  }

  protected get kind(): string {
    return 'AsyncLimiter'
  }

  protected get isOpen(): boolean {
    return this.#closing === undefined
  }

  protected get isReleased(): boolean {
    return this.#isReleased
  }

  /** Whether this limiter has decided it. @internal */
  owns(what: unknown): boolean {
    return this.#pool.owns(what)
  }

  async ready(): Promise<void> {
    await this.#openPool().ready()
  }

  check(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    return this.#request(Op.CHECK, key, cost, options)
  }

  async checkOrThrow(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision> {
    return admitted(await this.check(key, cost, options))
  }

  async reserve(key: Key, cost: number, options?: CheckOptions & CallOptions): Promise<AsyncReservation> {
    this.checkOpen()
    checkCost(cost) // it has no default
    const decision = (await this.check(key, cost, options)) as AnyPoolDecision
    return new PoolReservation({
      decision,
      cost,
      mostMore: mostPenalty(this.parts.rules),
      isGivenBack: () => hasOutcome(decision, Outcome.GIVEN_BACK),
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
    this.checkOpen()
    const { fingerprints } = this.#keys.pack(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    checkRemaining(remaining)
    checkSignal(signal)
    const own = ownCosts(costs, fingerprints.length / 2)
    return (await this.#openPool().checkMany(fingerprints, own, remaining, signal)) as BatchDecision
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    return this.waitFor(key, options, (decision) => this.#giveBack(decision as AnyPoolDecision))
  }

  async usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): Promise<number> {
    const { rule, lo, hi, ms } = this.usageRequest(key, lastMs, options)
    return (await this.#pool.requestWithMs(Op.USAGE, lo, hi, ms, rule)) as number
  }

  refund(decision: Decision): Promise<number>
  refund(key: Key, cost: number): Promise<number>
  async refund(what: Decision | Key, cost?: number): Promise<number> {
    const pool = this.#openPool()
    if (pool.owns(what)) {
      const { lo, hi } = what.rules[0]!.charge
      const given = (await pool.giveBack(what)) as number
      this.parts.waiters.wake(lo, hi)
      return given
    }
    if (this.#inline.owns(what)) return 0 // a peek of this thread, for a group
    if (isDecision(what)) throw foreignDecisionError(what)
    return this.#requestAndWake(Op.REFUND, what as Key, cost as number)
  }

  async penalize(key: Key, cost: number): Promise<boolean> {
    this.checkOpen()
    checkPenalty(cost, this.parts.rules)
    return (await this.#request<number>(Op.PENALIZE, key, cost)) === 1
  }

  async block(key: Key, ms: Duration): Promise<boolean> {
    const pool = this.#openPool()
    const forMs = blockMs(ms)
    const { lo, hi } = this.#keys.read(key)
    const isBlocked = (await pool.requestWithMs(Op.BLOCK, lo, hi, forMs)) === 1
    this.parts.waiters.wake(lo, hi) // the new block may end earlier
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
    this.parts.updates.check()
  }

  async update(rule: string, change: RuleChange): Promise<void> {
    this.changeRule(rule, change)
  }

  /** The engines by which this thread looks at the counts. @internal */
  get ruleEngines(): readonly RuleEngine[] {
    return this.parts.engines
  }

  /** @internal */
  fingerprintOf(key: string): { readonly lo: number; readonly hi: number } {
    return this.#keys.read(key)
  }

  /** Resolves when the workers have decided all requests of before. @internal */
  settled(): Promise<void> {
    return this.#openPool().flush()
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
    const { charge } = (decision as AnyPoolDecision).rules[0]!
    return Math.max(requestedMs, this.parts.engines[0]!.estimates.effectOf(charge, repliedMs))
  }

  /** This limiter as a member of a group. @internal */
  toMember(name: string): PoolMember {
    const parts = this.memberParts(name, () => this.#closing === undefined)
    return new PoolMember(parts, this.#inline, ({ lo, hi, cost, limit, isAttempt }) =>
      isAttempt
        ? this.attempt(lo, hi, cost, limit)
        : (this.#decide(Op.CHECK, lo, hi, cost, { limit }) as Promise<Decision>),
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.parts.waiters.close(closedError())
    await this.#pool.close()
    this.#inline.close()
    this.#isReleased = this.parts.file !== undefined
    this.parts.file?.release()
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
    const own = checkCallOptions(options, ['limit', 'signal'], this.parts.rules)
    const { lo, hi } = this.#keys.read(key)
    return this.#decide(op, lo, hi, cost, own)
  }

  /** Sends a CHECK, an ATTEMPT or a PEEK. */
  #decide(op: Op, lo: number, hi: number, cost: number, options: RequestOptions): Promise<unknown> {
    const pool = this.#openPool()
    const isPlain = op === Op.CHECK && options.limit === undefined && options.signal === undefined
    return isPlain ? pool.check(lo, hi, cost) : pool.request(op, lo, hi, cost, options)
  }

  /** @internal */
  protected attempt(lo: number, hi: number, cost: number, limit: CallLimit | undefined): Promise<Decision> {
    const isCharged = this.parts.memory.arenas.some(countsRefusals)
    return this.#decide(isCharged ? Op.ATTEMPT : Op.CHECK, lo, hi, cost, { limit }) as Promise<Decision>
  }

  /** Charges the key of a decision in addition, or gives back a part of the decision's charge. */
  async #change(decision: AnyPoolDecision, cost: number, actualCost: number): Promise<number> {
    const { lo, hi } = decision.rules[0]!.charge
    const pool = this.#openPool()
    if (actualCost > cost) {
      return (await pool.chargeMore(lo, hi, cost, actualCost, shadowedRules(decision))) as number
    }
    const given = (await pool.giveBack(decision, cost - actualCost)) as number
    this.parts.waiters.wake(lo, hi)
    return 0 - given
  }

  /**
   * Gives back an admission of an aborted `wait()`. Errors of the pool are ignored: no caller is left to
   * receive them.
   */
  #giveBack(decision: AnyPoolDecision): void {
    this.#pool.forceGiveBack(decision).catch((error: unknown) => {
      if (!(error instanceof MillraceError)) throw error
    })
  }

  async #requestAndWake(op: Op, key: Key, cost = 0): Promise<number> {
    const pool = this.#openPool()
    checkCost(cost)
    const { lo, hi } = this.#keys.read(key)
    const changed = (await pool.request(op, lo, hi, cost)) as number
    this.parts.waiters.wake(lo, hi)
    return changed
  }

  #openPool(): PoolEngine {
    if (this.#closing !== undefined) throw closedError()
    return this.#pool
  }
}
