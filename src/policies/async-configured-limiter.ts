import type { AsyncLimiter } from '../api/async-limiter.js'
import type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  LimiterRule,
  RuleChange,
  UsageOptions,
  WaitOptions,
} from '../api/call-options.js'
import {
  checkCost,
  checkOptions,
  checkRemaining,
  closedError,
  foreignDecisionError,
  isDecision,
  ownCosts,
} from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import type { AsyncReservation } from '../api/reservation.js'
import { MAX_POLICY_KEY } from '../config/policy-keys.js'
import { DecidedBatch } from '../core/base-batch.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { admitted } from '../core/limited.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import type { SharedLimiter, SharedPolicies } from '../engines/share.js'
import { shownRules } from '../limiters/shown-rules.js'
import type { Key, KeyHandle, PackedKeys } from '../memory/keys.js'
import { TextKeys } from '../memory/text-keys.js'
import { carryOverLater } from './carry-over.js'
import { KeyCountsInMemory, KeyCountsOnServer, type KeyHalves } from './key-counts.js'
import { isPending, pendingDecision } from './pending-decision.js'
import { type KeyOwner, type OwningLimiter, type PolicyChoice, totalOf } from './policy-choice.js'
import { memberIn } from './policy-plans.js'

type DecisionOptions = CheckOptions & CallOptions

/** Counts by the policies of one shape. A pool counts in memory that this thread shares. */
export type AsyncMember = AsyncLimiter & OwningLimiter & Partial<PoolCounts>

interface PoolCounts {
  readonly ruleEngines: readonly RuleEngine[]
  fingerprintOf(key: string): KeyHalves
  /** Resolves when all requests of before have been decided. */
  settled(): Promise<void>
}

/**
 * Decides by promises, by the policy that a configuration store has for the key. A call waits for a policy that is not
 * cached, for at most the deadline.
 */
export class AsyncConfiguredLimiter implements AsyncLimiter {
  readonly #choice: PolicyChoice<AsyncMember>
  readonly #first: AsyncLimiter
  readonly #keys = new TextKeys(this)
  readonly #share: Omit<SharedPolicies, 'onMiss'> | undefined
  /** By key: what it has used is being brought to the limiter that counts it now. */
  readonly #moves = new Map<string, Promise<void>>()
  #isOpen = true

  /** @internal */
  constructor(choice: PolicyChoice<AsyncMember>, share?: Omit<SharedPolicies, 'onMiss'>) {
    this.#choice = choice
    this.#first = choice.first
    this.#share = share
    choice.begin({ moved: (key, from, to) => this.#move(key, from, to), dropped: () => {} })
  }

  async ready(): Promise<void> {
    this.#checkOpen()
    await this.#first.ready()
  }

  get rule(): LimiterRule {
    return this.#first.rule
  }

  get rules(): readonly LimiterRule[] {
    return this.#first.rules
  }

  /** The limiter with the rules that made a decision. @internal */
  deciderOf(decision: Decision): { readonly rules: readonly LimiterRule[] } {
    return this.#choice.ownerOf(decision) ?? this
  }

  check(key: Key, cost = 1, options: DecisionOptions = {}): Promise<Decision> {
    return this.#decide(key, cost, options, (limiter, text, own) => limiter.check(text, cost, own))
  }

  async checkOrThrow(key: Key, cost?: number, options?: DecisionOptions): Promise<Decision> {
    return admitted(await this.check(key, cost, options))
  }

  peek(key: Key, cost = 1, options: DecisionOptions = {}): Promise<Decision> {
    return this.#decide(key, cost, options, (limiter, text, own) => limiter.peek(text, cost, own))
  }

  async #decide(
    key: Key,
    cost: number,
    options: DecisionOptions,
    act: (limiter: AsyncLimiter, text: string, options: DecisionOptions) => Promise<Decision>,
  ): Promise<Decision> {
    this.#checkOpen()
    checkCost(cost)
    const text = this.#keys.read(key)
    const known = this.#choice.peek(text)
    const isNow = known.plan >= 0 && this.#moves.size === 0
    const owner = isNow ? this.#choice.ownerBy(known) : await this.#ownerOf(text)
    if (owner === undefined) return this.#pending()
    return act(owner.member.limiter, text, this.#choice.optionsFor(owner, options))
  }

  #pending(): Decision {
    return pendingDecision(this.rule.name, this.#choice.deadlineMs)
  }

  /** The owner of a key, as far as its policy is known by the deadline; undefined: to be refused. */
  async #ownerOf(text: string): Promise<KeyOwner<AsyncMember> | undefined> {
    const owner = this.#choice.ownerBy(await this.#choice.load(text))
    await this.#moves.get(text)
    this.#checkOpen()
    return owner
  }

  async reserve(key: Key, cost: number, options: DecisionOptions = {}): Promise<AsyncReservation> {
    const [limiter, text, own] = await this.#ownerFor(key, options)
    return limiter.reserve(text, cost, own)
  }

  async checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions & CallOptions = {},
  ): Promise<BatchDecision> {
    this.#checkOpen()
    const { texts } = this.#keys.pack(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    const own = ownCosts(costs, texts.length)
    checkRemaining(remaining)
    const call: DecisionOptions = signal === undefined ? {} : { signal }
    const owners = await Promise.all(texts.map((text) => this.#ownerOf(text)))
    if (owners.every((owner) => owner?.member.limiter === this.#first && owner.limits === undefined))
      return this.#first.checkMany(texts, own, options)
    const decisions = await Promise.all(
      owners.map((owner, i) => {
        if (owner === undefined) return this.#pending()
        const cost = typeof own === 'number' ? own : own[i]!
        return owner.member.limiter.check(texts[i]!, cost, this.#choice.optionsFor(owner, call))
      }),
    )
    const batch = new DecidedBatch(texts.length, remaining, this.#choice.hasUnit)
    for (const [i, decision] of decisions.entries()) batch.add(i, decision)
    return batch
  }

  pack(keys: readonly Key[]): PackedKeys {
    this.#checkOpen()
    return this.#keys.pack(keys).packed
  }

  handle(key: string): KeyHandle {
    this.#checkOpen()
    return this.#keys.handle(key)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    const [limiter, text, own] = await this.#ownerFor(key, options)
    return limiter.wait(text, own)
  }

  async usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): Promise<number> {
    const [limiter, text] = await this.#ownerFor(key)
    return limiter.usage(text, lastMs, options)
  }

  refund(decision: Decision): Promise<number>
  refund(key: Key, cost: number): Promise<number>
  async refund(what: Decision | Key, cost?: number): Promise<number> {
    this.#checkOpen()
    if (!isDecision(what)) {
      const [limiter, text] = await this.#ownerFor(what as Key)
      return limiter.refund(text, cost!)
    }
    if (isPending(what)) return 0
    const owner = this.#choice.ownerOf(what)
    if (owner === undefined) throw foreignDecisionError(what)
    return owner.refund(what as Decision)
  }

  async penalize(key: Key, cost: number): Promise<boolean> {
    const [limiter, text] = await this.#ownerFor(key)
    return limiter.penalize(text, cost)
  }

  async block(key: Key, ms: Duration): Promise<boolean> {
    const [limiter, text] = await this.#ownerFor(key)
    return limiter.block(text, ms)
  }

  async unblock(key: Key): Promise<boolean> {
    const was = await this.#onAll(key, (limiter, text) => limiter.unblock(text))
    return was.some((each) => each)
  }

  async clear(key: Key): Promise<void> {
    await this.#onAll(key, async (limiter, text) => {
      await limiter.clear(text)
      await this.#countsOf(limiter, text).clearLedger()
    })
  }

  async clearAll(): Promise<void> {
    this.#checkOpen()
    await Promise.all(this.#choice.members.map(({ limiter }) => limiter.clearAll()))
  }

  async update(rule: string, change: RuleChange): Promise<void> {
    this.#checkOpen()
    await this.#first.update(rule, change)
    this.#choice.refresh()
  }

  share(): SharedLimiter {
    this.#checkOpen()
    const shared = this.#first.share() // refused by name where there is nothing to share
    if (this.#share === undefined) return shared
    return { ...shared, policies: { ...this.#share, onMiss: this.#choice.onMiss } }
  }

  async stats(): Promise<LimiterStats> {
    this.#checkOpen()
    const all = await Promise.all(this.#choice.members.map(({ limiter }) => limiter.stats()))
    return { ...totalOf(all, this.#share?.space), config: this.#choice.statistics() }
  }

  async close(): Promise<void> {
    this.#isOpen = false
    await this.#choice.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#isOpen ? { default: shownRules(this.rules) } : { isClosed: true }
    return inspectAs('AsyncLimiter', fields, options, inspect)
  }

  /** The limiter that counts a key, the key's text, and the options with the limits of its policy. */
  async #ownerFor<O extends CheckOptions>(key: Key, options?: O): Promise<[AsyncLimiter, string, O]> {
    this.#checkOpen()
    const text = this.#keys.read(key)
    const owner = await this.#ownerOf(text)
    if (owner === undefined) throw this.#choice.unknownError()
    return [owner.member.limiter, text, this.#choice.optionsFor(owner, options ?? ({} as O))]
  }

  #onAll<T>(key: Key, act: (limiter: AsyncMember, text: string) => Promise<T>): Promise<T[]> {
    this.#checkOpen()
    const text = this.#keys.read(key)
    return Promise.all(this.#choice.members.map(({ limiter }) => act(limiter, text)))
  }

  #checkOpen(): void {
    if (!this.#isOpen) throw closedError()
  }

  /**
   * Brings what a key has used to the member that counts it now. Calls of the key wait for it. Keys that share an entry
   * of the cache have too many names to move.
   */
  #move(key: string, from: number, to: number): void {
    const { members } = this.#choice
    const target = memberIn(to)
    if (key.length > MAX_POLICY_KEY || (from >= 0 && memberIn(from) === target)) return
    if (members.length === 1) return
    const before = this.#moves.get(key) ?? Promise.resolve()
    const move = before
      .then(() => this.#carry(key, target))
      .catch((error: unknown) => {
        // Closed meanwhile, or the store of counts is down: then its own outage says what holds.
        if (!(error instanceof MillraceError)) throw error
        if (this.#isOpen) this.#choice.report(error)
      })
      .finally(() => {
        if (this.#moves.get(key) === move) this.#moves.delete(key)
      })
    this.#moves.set(key, move)
  }

  /** Any of the other members may have counted the key. A pool's counts are read here, once its workers have replied. */
  async #carry(key: string, target: number): Promise<void> {
    const limiters = this.#choice.members.map(({ limiter }) => limiter)
    await Promise.all(limiters.map((limiter) => limiter.settled?.()))
    const counts = limiters.map((limiter) => this.#countsOf(limiter, key))
    const [to] = counts.splice(target, 1)
    await carryOverLater(to!, counts)
  }

  #countsOf(limiter: AsyncMember, key: string): KeyCountsInMemory | KeyCountsOnServer {
    if (limiter.ruleEngines === undefined) return new KeyCountsOnServer(limiter, key)
    return new KeyCountsInMemory({ ruleEngines: limiter.ruleEngines }, limiter.fingerprintOf!(key))
  }
}
