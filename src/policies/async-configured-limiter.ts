import type { AsyncLimiter } from '../api/async-limiter.js'
import type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  RuleChange,
  WaitOptions,
} from '../api/call-options.js'
import { checkCost, checkOpen, checkOptions, checkRemaining, isDecision, ownCosts } from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import type { AsyncReservation } from '../api/reservation.js'
import { MAX_POLICY_KEY } from '../config/policy-keys.js'
import { DecidedBatch } from '../core/base-batch.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import { inRoute, presentRoute } from '../core/channels.js'
import { COUNTED, countedNow } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import { admitted } from '../core/limited.js'
import type { TopOptions } from '../core/refusals.js'
import type { Rules } from '../core/rule.js'
import { ofRate } from '../core/rule-options.js'
import type { TopKey } from '../core/top-keys.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import type { TextKeys } from '../memory/text-keys.js'
import { carryOverLater } from './carry-over.js'
import { ConfiguredBase, type ShareOfPolicies } from './configured-base.js'
import { KeyCountsInMemory, KeyCountsOnServer, type KeyHalves, type TurnTaking } from './key-counts.js'
import { isKnown, memberIn, UNKNOWN } from './plan.js'
import type { KeyOwner, OwningLimiter, PolicyChoice } from './policy-choice.js'
import type { Windows } from './policy-plans.js'

type DecisionOptions = CheckOptions & CallOptions

/** Counts by the policies of one shape: a pool in memory that this thread shares, or a limiter on a server. */
export type AsyncMember = AsyncLimiter & OwningLimiter & Partial<PoolCounts> & Partial<ServerCounts>

interface ServerCounts extends TurnTaking {
  /** Changes a limit. If the window is to change, it does nothing but return the rules with that. @throws MillraceError */
  change(rule: string, change: RuleChange): Windows | undefined
  /** Makes a limiter with other rules, whose keys have other names. */
  withRules(rules: Rules, tag: number): AsyncMember
  /** Lets pending calls of `wait` for a key, or all of them, reject with {@link MOVED}. */
  moveWaits(key?: string): void
}

/** A call of `wait` goes on elsewhere: its key counts in another window. */
export const MOVED = new Error('the key of this call counts elsewhere')
/** So many keys are brought along at once. */
const MOVED_AT_ONCE = 64

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
export class AsyncConfiguredLimiter extends ConfiguredBase<AsyncMember> implements AsyncLimiter {
  /** By key: what it has used is being brought to the limiter that counts it now. */
  readonly #moves = new Map<string, Promise<void>>()

  /** @internal */
  constructor(choice: PolicyChoice<AsyncMember>, share?: ShareOfPolicies, keys?: TextKeys) {
    super('AsyncLimiter', choice, share, undefined, keys)
    choice.begin({
      moved: (key, from, to) => {
        if (key.length <= MAX_POLICY_KEY) this.#move(key, from, to)
      },
      dropped: () => {},
    })
  }

  async ready(): Promise<void> {
    checkOpen(this.choice)
    await this.choice.first.ready()
  }

  check(key: Key, cost = 1, options: DecisionOptions = {}): Promise<Decision> {
    return this.#decide('check', key, cost, options)
  }

  async checkOrThrow(key: Key, cost?: number, options?: DecisionOptions): Promise<Decision> {
    return admitted(await this.check(key, cost, options))
  }

  peek(key: Key, cost = 1, options: DecisionOptions = {}): Promise<Decision> {
    return this.#decide('peek', key, cost, options)
  }

  async #decide(
    method: 'check' | 'peek',
    key: Key,
    cost: number,
    options: DecisionOptions,
  ): Promise<Decision> {
    checkOpen(this.choice)
    checkCost(cost)
    const text = this.keys.read(key)
    const known = this.choice.peek(text)
    const route = presentRoute()
    const isNow = isKnown(known.plan) && this.#moves.size === 0 && !this.#hasNoEntry(text)
    const owner = isNow ? this.choice.ownerBy(known) : await this.#ownerOf(text)
    if (owner === undefined) return this.pending()
    const { limiter } = owner.member
    return inRoute(route, () => limiter[method](text, cost, this.choice.optionsFor(owner, options)))
  }

  async top(options: TopOptions): Promise<TopKey[]> {
    checkOpen(this.choice)
    return this.choice.first.top(options)
  }

  /** The owner of a key, as far as its policy is known by the deadline; undefined: to be refused. */
  async #ownerOf(text: string): Promise<KeyOwner<AsyncMember> | undefined> {
    const found = await this.choice.load(text)
    const owner = this.choice.ownerBy(found)
    if (this.#hasNoEntry(text)) this.#move(text, UNKNOWN, this.choice.planIn(found))
    await this.#moves.get(text)
    checkOpen(this.choice)
    return owner
  }

  reserve(key: Key, cost: number, options: DecisionOptions = {}): Promise<AsyncReservation> {
    return this.#within(key, options, (limiter, text, own) => limiter.reserve(text, cost, own))
  }

  async checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions & CallOptions = {},
  ): Promise<BatchDecision> {
    checkOpen(this.choice)
    const { texts } = this.keys.pack(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    const own = ownCosts(costs, texts.length)
    checkRemaining(remaining)
    const call: DecisionOptions = signal === undefined ? {} : { signal }
    const owners = await Promise.all(texts.map((text) => this.#ownerOf(text)))
    const { first } = this.choice
    if (owners.every((owner) => owner?.member.limiter === first && owner.limits === undefined))
      return first.checkMany(texts, own, options)
    const decisions = await Promise.all(
      owners.map((owner, i) => {
        if (owner === undefined) return this.pending()
        const cost = typeof own === 'number' ? own : own[i]!
        return owner.member.limiter.check(texts[i]!, cost, this.choice.optionsFor(owner, call))
      }),
    )
    const batch = new DecidedBatch(texts.length, remaining, this.choice.hasUnit)
    for (const [i, decision] of decisions.entries()) batch.add(i, decision)
    return batch
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    try {
      return await this.#within(key, options, (limiter, text, own) => limiter.wait(text, own))
    } catch (reason) {
      if (reason !== MOVED) throw reason
      return this.wait(key, options)
    }
  }

  async refund(what: Decision | Key, cost?: number): Promise<number> {
    checkOpen(this.choice)
    if (isDecision(what)) return (await this.makerOf(what as Decision)?.refund(what as Decision)) ?? 0
    return this.by(what as Key, (limiter, text) => limiter.refund(text, cost!))
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
    checkOpen(this.choice)
    await Promise.all(this.choice.members.map(({ limiter }) => limiter.clearAll()))
  }

  async update(rule: string, change: RuleChange): Promise<void> {
    checkOpen(this.choice)
    const { first } = this.choice
    if (first.change === undefined) await first.update(rule, change)
    else {
      const windows = first.change(rule, change)
      if (windows !== undefined) await this.replaceDefault(windows)
    }
    this.choice.refresh()
  }

  /**
   * Lets keys without a policy count in other windows. Resolves when all known keys have been brought along.
   * @param charged keys that were charged before this limiter was made
   * @internal
   */
  async replaceDefault(windows: Windows, charged: readonly string[] = []): Promise<void> {
    const { choice } = this
    const { first: before, members } = choice
    const { rules } = windows
    choice.replaceDefault(
      windows,
      (tag) => members[0]!.limiter.withRules!(rules, tag),
      (limiter) => {
        for (const rule of rules)
          limiter.change!(rule.name, { limit: ofRate(rule, rule.limit) * (rule.unit ?? 1) })
      },
    )
    before.moveWaits!()
    const keys = [...choice.keys(), ...charged]
    for (let from = 0; from < keys.length; from += MOVED_AT_ONCE)
      await Promise.all(keys.slice(from, from + MOVED_AT_ONCE).map((key) => this.#ownerOf(key)))
  }

  async stats(): Promise<LimiterStats> {
    checkOpen(this.choice)
    return this.total(await Promise.all(this.choice.members.map(({ limiter }) => limiter.stats())))
  }

  /** @internal */
  [COUNTED](): LimiterStats {
    return this.total(this.choice.members.map(({ limiter }) => countedNow<LimiterStats>(limiter)!))
  }

  /** @internal */
  protected by<T>(key: Key, act: (limiter: AsyncMember, text: string) => Promise<T>): Promise<T> {
    return this.#within(key, {}, act)
  }

  /** Acts by the limiter that counts a key, with the key's text, and the options with the limits of its policy. */
  async #within<T, O extends CheckOptions>(
    key: Key,
    options: O,
    act: (limiter: AsyncMember, text: string, options: O) => Promise<T>,
  ): Promise<T> {
    checkOpen(this.choice)
    const text = this.keys.read(key)
    const owner = await this.#ownerOf(text)
    if (owner === undefined) throw this.choice.unknownError()
    return act(owner.member.limiter, text, this.choice.optionsFor(owner, options))
  }

  async #onAll<T>(key: Key, act: (limiter: AsyncMember, text: string) => Promise<T>): Promise<T[]> {
    checkOpen(this.choice)
    const text = this.keys.read(key)
    return Promise.all(this.choice.members.map(({ limiter }) => act(limiter, text)))
  }

  /** Long keys share an entry of the cache. So what each has used is brought along at each call. */
  #hasNoEntry(key: string): boolean {
    return key.length > MAX_POLICY_KEY && this.choice.members.length > 1
  }

  /** Brings what a key has used to the member that counts it now. Calls of the key wait for it. */
  #move(key: string, from: number, to: number): void {
    const { members } = this.choice
    const target = memberIn(to)
    if ((isKnown(from) && memberIn(from) === target) || members.length === 1) return
    for (const [i, { limiter }] of members.entries()) if (i !== target) limiter.moveWaits?.(key)
    const before = this.#moves.get(key) ?? Promise.resolve()
    const move = before
      .then(() => this.#carry(key, target))
      .catch((error: unknown) => {
        // Closed meanwhile, or the store of counts is down: then its own outage says what holds.
        if (!(error instanceof MillraceError)) throw error
        if (!this.choice.isOpen) return
        this.choice.report(error)
        this.choice.moveAgain(key)
      })
      .finally(() => {
        if (this.#moves.get(key) === move) this.#moves.delete(key)
      })
    this.#moves.set(key, move)
  }

  /** Any of the other members may have counted the key. A pool's counts are read here, once its workers have replied. */
  async #carry(key: string, target: number): Promise<void> {
    const limiters = this.choice.members.map(({ limiter }) => limiter)
    await Promise.all(limiters.map((limiter) => limiter.settled?.()))
    const counts = limiters.map((limiter) => this.#countsOf(limiter, key))
    const [to] = counts.splice(target, 1)
    await carryOverLater(to!, counts)
  }

  #countsOf(limiter: AsyncMember, key: string): KeyCountsInMemory | KeyCountsOnServer {
    if (limiter.ruleEngines === undefined)
      return new KeyCountsOnServer(limiter as AsyncMember & TurnTaking, key)
    return new KeyCountsInMemory({ ruleEngines: limiter.ruleEngines }, limiter.fingerprintOf!(key))
  }
}
