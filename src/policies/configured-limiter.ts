import type { CheckManyOptions, CheckOptions, RuleChange, WaitOptions } from '../api/call-options.js'
import {
  checkCost,
  checkOpen,
  checkOptions,
  checkRemaining,
  closedError,
  invalidCostError,
  isDecision,
  ownCosts,
} from '../api/checks.js'
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { InlineReservation, type Reservation } from '../api/reservation.js'
import { MAX_POLICY_KEY } from '../config/policy-keys.js'
import { DecidedBatch } from '../core/base-batch.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import { hearsRefusals, publishBatch, publishRefusal } from '../core/channels.js'
import { tellClosing } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import { admitted } from '../core/limited.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { Engine, OwnDecision } from '../engines/engine.js'
import type { AnyInlineLimiter } from '../limiters/limiter-on.js'
import type { Hasher } from '../memory/hash.js'
import { hasherOf, KeyReader } from '../memory/key-reader.js'
import { checkKeyString, type Key, MAX_KEY_LENGTH, type PackedKeys } from '../memory/keys.js'
import type { CachedPolicy } from './cache.js'
import { carryOver } from './carry-over.js'
import { ConfiguredBase, type ShareOfPolicies } from './configured-base.js'
import { KeyCountsInMemory } from './key-counts.js'
import { DEFAULT_PLAN, isKnown, isOwnValue, memberIn, OF_MEMBER, UNKNOWN, valueIn } from './plan.js'
import { PlanTable } from './plan-table.js'
import type { KeyOwner, PolicyChoice } from './policy-choice.js'

/** What decides by the plans of one member. */
interface Decider {
  readonly engine: Engine<OwnDecision>
  /** By which a plan's value is the limit; 0: there are several rules, and the value is the index of their limits. */
  readonly unit: number
}

const NO_WAY = -1

/** What decides for a key; undefined: the key is to be refused. */
type Owner = KeyOwner<AnyInlineLimiter> | undefined

/** Decides on the calling thread, by the policy that a configuration store has for the key. */
export class ConfiguredLimiter extends ConfiguredBase<AnyInlineLimiter> implements Limiter {
  readonly #reader: KeyReader
  readonly #hasher: Hasher
  readonly #table: PlanTable<CachedPolicy>
  /** By the index of the member. */
  readonly #deciders: Decider[] = []
  #isOutdated = false

  /** @internal */
  constructor(choice: PolicyChoice<AnyInlineLimiter>, share: ShareOfPolicies) {
    const { ruleEngines } = choice.first
    const { arena } = ruleEngines[0]!
    super('Limiter', choice, share, hasherOf(arena))
    this.#reader = new KeyReader(this, arena)
    this.#hasher = this.#reader.hasher
    this.#table = new PlanTable(share.maxKeys)
    choice.begin({
      moved: (key, from, to) => this.#move(key, from, to),
      dropped: (keys) => this.#drop(keys),
      displaced: (key) => this.#unlink(key),
    })
    for (const { views } of ruleEngines) views.onRecord = () => this.#drop(undefined, true)
  }

  async ready(): Promise<void> {
    checkOpen(this.choice)
  }

  check(key: Key, cost = 1, options?: CheckOptions): Decision {
    if (!this.choice.isOpen) throw closedError()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCostError(cost)
    if (options !== undefined) return this.#checkBy(options, key, cost)
    if (typeof key === 'string') {
      if (key.length === 0 || key.length > MAX_KEY_LENGTH) checkKeyString(key, 'key')
      const hasher = this.#hasher
      hasher.hash(key)
      const decided = this.#decide(key, hasher.lo, hasher.hi, cost, NO_WAY)
      return decided.allowed || !hearsRefusals()
        ? decided
        : publishRefusal(decided, key, this.choice.first.refusals)
    }
    const handle = this.#reader.owned(key)
    const decision = this.#decide(handle, handle.lo, handle.hi, cost, handle.way)
    const { way } = decision as OwnDecision
    if (way !== undefined && handle.way !== way) handle.way = way
    return decision.allowed || !hearsRefusals()
      ? decision
      : publishRefusal(decision, key, this.choice.first.refusals)
  }

  #decide(key: Key, lo: number, hi: number, cost: number, hint: number): Decision {
    let plan = this.#table.find(lo, hi)
    if (!isKnown(plan)) {
      plan = this.#lookUp(key, lo, hi)
      if (!isKnown(plan)) return this.pending()
    }
    const member = memberIn(plan)
    const { engine, unit } = this.#deciders[member] ?? this.#deciderOf(member)
    const value = valueIn(plan)
    const own = unit > 0 && isOwnValue(value) ? value * unit : undefined
    const decision =
      value === OF_MEMBER
        ? engine.checkNow(lo, hi, cost, hint)
        : engine.checkWithin(own ?? this.choice.limitsOf(plan, value), lo, hi, cost, hint)
    return this.#isOutdated ? this.#decideAgain(decision, key, lo, hi, cost) : decision
  }

  /** The default has another window: what the key has used elsewhere comes first. */
  #decideAgain(decision: OwnDecision, key: Key, lo: number, hi: number, cost: number): Decision {
    this.#isOutdated = false
    if (!this.choice.first.owns(decision)) return decision
    this.choice.first.engine.giveBack(decision)
    this.choice.refresh()
    return this.#decide(key, lo, hi, cost, NO_WAY)
  }

  #deciderOf(member: number): Decider {
    const { limiter, shape } = this.choice.members[member]!
    const { length, 0: first } = shape.rules
    const decider = { engine: limiter.engine, unit: length === 1 ? (first.unit ?? 1) : 0 }
    this.#deciders[member] = decider
    return decider
  }

  /** The plan by the cache, kept for the next call; UNKNOWN: to be refused. */
  #lookUp(key: Key, lo: number, hi: number): number {
    const source = this.#table.sourceOf(lo, hi)
    if (source !== undefined && this.choice.isCurrent(source)) {
      this.#table.set(lo, hi, source.plan, source)
      return source.plan
    }
    const text = this.keys.read(key)
    const found = this.choice.peek(text)
    const plan = this.choice.planIn(found)
    if (!isKnown(plan)) return this.choice.onMiss === 'refuse' ? UNKNOWN : DEFAULT_PLAN
    // All keys that begin so share what was found.
    const isShared = text.length > MAX_POLICY_KEY
    if (isShared) this.#carry(memberIn(plan), lo, hi)
    this.#table.set(lo, hi, plan, isShared ? undefined : found)
    return plan
  }

  async checkAsync(key: Key, cost = 1, options: CheckOptions = {}): Promise<Decision> {
    checkOpen(this.choice)
    checkCost(cost)
    checkOptions(options, ['limit'])
    const text = this.keys.read(key)
    return this.#checkWith(await this.#loadedOwner(text), text, cost, options)
  }

  #checkBy(options: CheckOptions, key: Key, cost: number): Decision {
    checkOptions(options, ['limit'])
    const text = this.keys.read(key)
    return this.#checkWith(this.#ownerOf(text), text, cost, options)
  }

  #checkWith(owner: Owner, text: string, cost: number, options: CheckOptions): Decision {
    if (owner === undefined) return this.pending()
    return owner.member.limiter.check(text, cost, this.choice.optionsFor(owner, options))
  }

  checkOrThrow(key: Key, cost?: number, options?: CheckOptions): Decision {
    return admitted(this.check(key, cost, options))
  }

  reserve(key: Key, cost: number, options: CheckOptions = {}): Reservation {
    checkOpen(this.choice)
    const text = this.keys.read(key)
    const owner = this.#ownerOf(text)
    if (owner !== undefined)
      return owner.member.limiter.reserve(text, cost, this.choice.optionsFor(owner, options))
    checkCost(cost)
    const decision = this.pending()
    return new InlineReservation({ decision, cost, mostMore: 0, isGivenBack: () => false, change: () => 0 })
  }

  peek(key: Key, cost = 1, options: CheckOptions = {}): Decision {
    checkOpen(this.choice)
    checkCost(cost)
    const text = this.keys.read(key)
    const owner = this.#ownerOf(text)
    if (owner === undefined) return this.pending()
    return owner.member.limiter.peek(text, cost, this.choice.optionsFor(owner, options))
  }

  checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions = {},
  ): BatchDecision {
    checkOpen(this.choice)
    const { packed, texts } = this.keys.pack(keys)
    checkOptions(options, ['remaining'])
    const { remaining = false } = options
    checkRemaining(remaining)
    const { fingerprints } = packed
    const own = ownCosts(costs, packed.length)
    checkOpen(this.choice) // once more: a getter may have closed the limiter
    const plans = new Int32Array(packed.length)
    let isOne = true
    for (let i = 0; i < plans.length; i++) {
      const [lo, hi] = [fingerprints[2 * i]!, fingerprints[2 * i + 1]!]
      const known = this.#table.find(lo, hi)
      plans[i] = isKnown(known) ? known : this.#lookUp(texts[i]!, lo, hi)
      if (plans[i] !== plans[0]) isOne = false
    }
    if (isOne && (plans[0] ?? DEFAULT_PLAN) === DEFAULT_PLAN)
      return this.#published(this.choice.first.engine.checkMany(fingerprints, own, remaining), keys)
    const batch = new DecidedBatch(plans.length, remaining, this.choice.hasUnit)
    for (let i = 0; i < plans.length; i++) {
      const cost = typeof own === 'number' ? own : own[i]!
      // Looked up once more: the plan of a key may have been forgotten for those of others.
      batch.add(i, this.#decide(texts[i]!, fingerprints[2 * i]!, fingerprints[2 * i + 1]!, cost, NO_WAY))
    }
    return this.#published(batch, keys)
  }

  #published(batch: BatchDecision, keys: readonly Key[] | PackedKeys): BatchDecision {
    return publishBatch(batch, keys, this.choice.first.refusals, this.rule.name)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    checkOpen(this.choice)
    const text = this.keys.read(key)
    const owner = await this.#loadedOwner(text)
    if (owner === undefined) throw this.choice.unknownError()
    return owner.member.limiter.wait(text, this.choice.optionsFor(owner, options))
  }

  refund(what: Decision | Key, cost?: number): number {
    checkOpen(this.choice)
    if (isDecision(what)) return this.makerOf(what as Decision)?.refund(what as Decision) ?? 0
    return this.by(what as Key, (limiter, text) => limiter.refund(text, cost!))
  }

  unblock(key: Key): boolean {
    return this.by(key, (_, text) =>
      this.choice.members.map(({ limiter }) => limiter.unblock(text)).some((was) => was),
    )
  }

  clear(key: Key): void {
    this.by(key, (_, text) => {
      const halves = this.#reader.read(text)
      for (const { limiter } of this.choice.members) {
        limiter.clear(text)
        new KeyCountsInMemory(limiter, halves).clearLedger()
      }
    })
  }

  clearAll(): void {
    checkOpen(this.choice)
    for (const { limiter } of this.choice.members) limiter.clearAll()
  }

  update(rule: string, change: RuleChange): void {
    checkOpen(this.choice)
    this.choice.first.update(rule, change)
    this.choice.refresh()
  }

  stats(): LimiterStats {
    checkOpen(this.choice)
    return this.total(this.choice.members.map(({ limiter }) => limiter.stats()))
  }

  top(options: TopOptions): TopKey[] {
    checkOpen(this.choice)
    return this.choice.first.top(options)
  }

  override close(): Promise<void> {
    if (this.choice.isOpen) tellClosing(this)
    this.#table.close()
    return super.close()
  }

  /** @internal */
  protected by<T>(key: Key, act: (limiter: AnyInlineLimiter, text: string) => T): T {
    checkOpen(this.choice)
    const text = this.keys.read(key)
    return act(this.#ownerOf(text)?.member.limiter ?? this.choice.first, text)
  }

  #ownerOf(text: string): Owner {
    return this.choice.ownerBy(this.choice.peek(text))
  }

  async #loadedOwner(text: string): Promise<Owner> {
    const found = await this.choice.load(text)
    checkOpen(this.choice)
    return this.choice.ownerBy(found)
  }

  #move(key: string, from: number, to: number): void {
    if (key.length > MAX_POLICY_KEY) {
      // It stands for all keys that begin so. What they have used is carried over when each is looked up.
      if (isKnown(from)) this.#table.clear()
      return
    }
    const { lo, hi } = this.#reader.read(key)
    this.#table.remove(lo, hi)
    if (!isKnown(from) || memberIn(from) !== memberIn(to)) this.#carry(memberIn(to), lo, hi)
  }

  /** Any of the other members may have counted the key: by an earlier policy, or in another thread. */
  #carry(target: number, lo: number, hi: number): void {
    const counts = this.choice.members.map(({ limiter }) => new KeyCountsInMemory(limiter, { lo, hi }))
    const [to] = counts.splice(target, 1)
    carryOver(to!, counts)
  }

  #unlink(key: string): void {
    const { lo, hi } = this.#reader.read(key)
    this.#table.unlink(lo, hi)
  }

  /** `isOutdated`: the first member has got another window since. */
  #drop(keys: readonly string[] | undefined, isOutdated = false): void {
    if (keys === undefined) this.#isOutdated = isOutdated
    if (keys === undefined || keys.some((key) => key.endsWith('*'))) {
      this.#table.clear()
      return
    }
    for (const key of keys) {
      const { lo, hi } = this.#reader.read(key)
      this.#table.remove(lo, hi)
    }
  }
}
