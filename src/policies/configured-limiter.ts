import type {
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
  invalidCostError,
  isDecision,
  ownCosts,
} from '../api/checks.js'
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { InlineReservation, type Reservation } from '../api/reservation.js'
import { MAX_POLICY_KEY } from '../config/policy-keys.js'
import { DecidedBatch } from '../core/base-batch.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { admitted } from '../core/limited.js'
import type { OwnDecision } from '../engines/engine.js'
import type { SharedLimiter, SharedPolicies } from '../engines/share.js'
import type { AnyInlineLimiter } from '../limiters/limiter-on.js'
import { shownRules } from '../limiters/shown-rules.js'
import type { Hasher } from '../memory/hash.js'
import { checkKeyString, type Key, type KeyHandle, MAX_KEY_LENGTH, type PackedKeys } from '../memory/keys.js'
import type { CachedPolicy } from './cache.js'
import { carryOver } from './carry-over.js'
import { KeyCountsInMemory } from './key-counts.js'
import { KeyTexts } from './key-texts.js'
import { isPending, pendingDecision } from './pending-decision.js'
import { type Decider, deciderFor } from './plan-decider.js'
import { PlanTable } from './plan-table.js'
import { type PolicyChoice, totalOf } from './policy-choice.js'
import { DEFAULT_PLAN, isOwnValue, memberIn, valueIn } from './policy-plans.js'

const NO_WAY = -1

/** Decides on the calling thread, by the policy that a configuration store has for the key. */
export class ConfiguredLimiter implements Limiter {
  readonly #choice: PolicyChoice<AnyInlineLimiter>
  readonly #first: AnyInlineLimiter
  readonly #keys: KeyTexts
  readonly #hasher: Hasher
  readonly #table: PlanTable<CachedPolicy>
  readonly #share: Omit<SharedPolicies, 'onMiss'>
  readonly #isRefusedOnMiss: boolean
  /** By the index of the member. */
  readonly #deciders: Decider[] = []
  #isOpen = true
  #isOutdated = false

  /** @internal */
  constructor(choice: PolicyChoice<AnyInlineLimiter>, share: Omit<SharedPolicies, 'onMiss'>) {
    this.#choice = choice
    this.#first = choice.first
    this.#keys = new KeyTexts(this, choice.first.ruleEngines[0]!.arena)
    this.#hasher = this.#keys.hasher
    this.#table = new PlanTable(share.maxKeys)
    this.#share = share
    this.#isRefusedOnMiss = choice.onMiss === 'refuse'
    choice.begin({
      moved: (key, from, to) => this.#move(key, from, to),
      dropped: (keys) => this.#drop(keys),
      displaced: (key) => this.#unlink(key),
    })
    for (const { views } of choice.first.ruleEngines) views.onRecord = () => this.#drop(undefined, true)
  }

  async ready(): Promise<void> {
    this.#checkOpen()
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

  check(key: Key, cost = 1, options?: CheckOptions): Decision {
    if (!this.#isOpen) throw closedError()
    if (!(Number.isInteger(cost) && cost >= 0)) throw invalidCostError(cost)
    if (options !== undefined) return this.#checkBy(options, key, cost)
    if (typeof key === 'string') {
      if (key.length === 0 || key.length > MAX_KEY_LENGTH) checkKeyString(key, 'key')
      const hasher = this.#hasher
      hasher.hash(key)
      return this.#decide(key, hasher.lo, hasher.hi, cost, NO_WAY)
    }
    const handle = this.#keys.owned(key)
    const decision = this.#decide(handle, handle.lo, handle.hi, cost, handle.way)
    const { way } = decision as OwnDecision
    if (way !== undefined && handle.way !== way) handle.way = way
    return decision
  }

  #decide(key: Key, lo: number, hi: number, cost: number, hint: number): Decision {
    let plan = this.#table.find(lo, hi)
    if (plan < 0) {
      plan = this.#lookUp(key, lo, hi)
      if (plan < 0) return this.#pending()
    }
    const member = memberIn(plan)
    const { engine, unit } = this.#deciders[member] ?? this.#deciderOf(member)
    const value = valueIn(plan)
    const own = unit > 0 && isOwnValue(value) ? value * unit : undefined
    const decision =
      value === 0
        ? engine.checkNow(lo, hi, cost, hint)
        : engine.checkWithin(own ?? this.#choice.limitsOf(plan, value), lo, hi, cost, hint)
    return this.#isOutdated ? this.#decideAgain(decision, key, lo, hi, cost) : decision
  }

  /** The default has another window: what the key has used elsewhere comes first. */
  #decideAgain(decision: OwnDecision, key: Key, lo: number, hi: number, cost: number): Decision {
    this.#isOutdated = false
    if (!this.#first.owns(decision)) return decision
    this.#first.engine.giveBack(decision)
    this.#choice.refresh()
    return this.#decide(key, lo, hi, cost, NO_WAY)
  }

  #deciderOf(member: number): Decider {
    const decider = deciderFor(this.#choice.members[member]!)
    this.#deciders[member] = decider
    return decider
  }

  /** The plan by the cache, kept for the next call; below 0: to be refused. */
  #lookUp(key: Key, lo: number, hi: number): number {
    const source = this.#table.sourceOf(lo, hi)
    if (source !== undefined && this.#choice.isCurrent(source)) {
      this.#table.set(lo, hi, source.plan, source)
      return source.plan
    }
    const text = this.#keys.textOf(key)
    const found = this.#choice.peek(text)
    const plan = this.#choice.planIn(found)
    if (plan < 0) return this.#isRefusedOnMiss ? -1 : DEFAULT_PLAN
    // All keys that begin so share what was found.
    const isShared = text.length > MAX_POLICY_KEY
    if (isShared) this.#carry(memberIn(plan), lo, hi)
    this.#table.set(lo, hi, plan, isShared ? undefined : found)
    return plan
  }

  #pending(): Decision {
    return pendingDecision(this.#first.rule.name, this.#choice.deadlineMs)
  }

  async checkAsync(key: Key, cost = 1, options: CheckOptions = {}): Promise<Decision> {
    this.#checkOpen()
    checkCost(cost)
    checkOptions(options, ['limit'])
    const text = this.#keys.textOf(key)
    const plan = this.#planIn(await this.#choice.load(text))
    this.#checkOpen()
    return this.#checkWith(plan, text, cost, options)
  }

  #checkBy(options: CheckOptions, key: Key, cost: number): Decision {
    checkOptions(options, ['limit'])
    const text = this.#keys.textOf(key)
    return this.#checkWith(this.#planFor(text), text, cost, options)
  }

  #checkWith(plan: number, text: string, cost: number, options: CheckOptions): Decision {
    if (plan < 0) return this.#pending()
    return this.#limiterOf(plan).check(text, cost, this.#choice.withLimits(plan, options))
  }

  checkOrThrow(key: Key, cost?: number, options?: CheckOptions): Decision {
    return admitted(this.check(key, cost, options))
  }

  reserve(key: Key, cost: number, options: CheckOptions = {}): Reservation {
    this.#checkOpen()
    const text = this.#keys.textOf(key)
    const plan = this.#planFor(text)
    if (plan >= 0) return this.#limiterOf(plan).reserve(text, cost, this.#choice.withLimits(plan, options))
    checkCost(cost)
    const decision = this.#pending()
    return new InlineReservation({ decision, cost, mostMore: 0, isGivenBack: () => false, change: () => 0 })
  }

  peek(key: Key, cost = 1, options: CheckOptions = {}): Decision {
    this.#checkOpen()
    checkCost(cost)
    const text = this.#keys.textOf(key)
    const plan = this.#planFor(text)
    if (plan < 0) return this.#pending()
    return this.#limiterOf(plan).peek(text, cost, this.#choice.withLimits(plan, options))
  }

  checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions = {},
  ): BatchDecision {
    this.#checkOpen()
    const { packed, texts } = this.#keys.packWithTexts(keys)
    checkOptions(options, ['remaining'])
    const { remaining = false } = options
    checkRemaining(remaining)
    const { fingerprints } = packed
    const own = ownCosts(costs, packed.length)
    this.#checkOpen() // once more: a getter may have closed the limiter
    const plans = new Int32Array(packed.length)
    let isOne = true
    for (let i = 0; i < plans.length; i++) {
      const [lo, hi] = [fingerprints[2 * i]!, fingerprints[2 * i + 1]!]
      const known = this.#table.find(lo, hi)
      plans[i] = known >= 0 ? known : this.#lookUp(texts[i]!, lo, hi)
      if (plans[i] !== plans[0]) isOne = false
    }
    if (isOne && (plans[0] ?? DEFAULT_PLAN) === DEFAULT_PLAN)
      return this.#first.engine.checkMany(fingerprints, own, remaining)
    const batch = new DecidedBatch(plans.length, remaining, this.#choice.hasUnit)
    for (let i = 0; i < plans.length; i++) {
      const cost = typeof own === 'number' ? own : own[i]!
      // Looked up once more: the plan of a key may have been forgotten for those of others.
      batch.add(i, this.#decide(texts[i]!, fingerprints[2 * i]!, fingerprints[2 * i + 1]!, cost, NO_WAY))
    }
    return batch
  }

  pack(keys: readonly Key[]): PackedKeys {
    this.#checkOpen()
    return this.#keys.packWithTexts(keys).packed
  }

  handle(key: string): KeyHandle {
    this.#checkOpen()
    return this.#keys.handle(key)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    this.#checkOpen()
    const text = this.#keys.textOf(key)
    const plan = this.#planIn(await this.#choice.load(text))
    this.#checkOpen()
    if (plan < 0) throw this.#choice.unknownError()
    return this.#limiterOf(plan).wait(text, this.#choice.withLimits(plan, options))
  }

  usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): number {
    const [limiter, text] = this.#ownerOf(key)
    return limiter.usage(text, lastMs, options)
  }

  refund(decision: Decision): number
  refund(key: Key, cost: number): number
  refund(what: Decision | Key, cost?: number): number {
    this.#checkOpen()
    if (!isDecision(what)) {
      const [limiter, text] = this.#ownerOf(what as Key)
      return limiter.refund(text, cost!)
    }
    if (isPending(what)) return 0
    const owner = this.#choice.ownerOf(what)
    if (owner === undefined) throw foreignDecisionError(what)
    return owner.refund(what as Decision)
  }

  penalize(key: Key, cost: number): boolean {
    const [limiter, text] = this.#ownerOf(key)
    return limiter.penalize(text, cost)
  }

  block(key: Key, ms: Duration): boolean {
    const [limiter, text] = this.#ownerOf(key)
    return limiter.block(text, ms)
  }

  unblock(key: Key): boolean {
    const [, text] = this.#ownerOf(key)
    return this.#choice.members.map(({ limiter }) => limiter.unblock(text)).some((was) => was)
  }

  clear(key: Key): void {
    const [, text] = this.#ownerOf(key)
    const halves = this.#keys.read(text)
    for (const { limiter } of this.#choice.members) {
      limiter.clear(text)
      new KeyCountsInMemory(limiter, halves).clearLedger()
    }
  }

  clearAll(): void {
    this.#checkOpen()
    for (const { limiter } of this.#choice.members) limiter.clearAll()
  }

  update(rule: string, change: RuleChange): void {
    this.#checkOpen()
    this.#first.update(rule, change)
    this.#choice.refresh()
  }

  share(): SharedLimiter {
    this.#checkOpen()
    return { ...this.#first.share(), policies: { ...this.#share, onMiss: this.#choice.onMiss } }
  }

  stats(): LimiterStats {
    this.#checkOpen()
    const all = this.#choice.members.map(({ limiter }) => limiter.stats())
    return { ...totalOf(all, this.#share.space), config: this.#choice.statistics() }
  }

  async close(): Promise<void> {
    this.#isOpen = false
    this.#table.close()
    await this.#choice.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#isOpen ? { default: shownRules(this.rules) } : { isClosed: true }
    return inspectAs('Limiter', fields, options, inspect)
  }

  /** The limiter that counts a key, and its text. */
  #ownerOf(key: Key): [AnyInlineLimiter, string] {
    this.#checkOpen()
    const text = this.#keys.textOf(key)
    return [this.#limiterOf(this.#choice.planOrDefault(text)), text]
  }

  #limiterOf(plan: number): AnyInlineLimiter {
    return this.#choice.members[memberIn(plan)]!.limiter
  }

  #planFor(text: string): number {
    return this.#planIn(this.#choice.peek(text))
  }

  #planIn(found: CachedPolicy): number {
    const plan = this.#choice.planIn(found)
    return plan >= 0 || this.#isRefusedOnMiss ? plan : DEFAULT_PLAN
  }

  #checkOpen(): void {
    if (!this.#isOpen) throw closedError()
  }

  #move(key: string, from: number, to: number): void {
    if (key.length > MAX_POLICY_KEY) {
      // It stands for all keys that begin so. What they have used is carried over when each is looked up.
      if (from >= 0) this.#table.clear()
      return
    }
    const { lo, hi } = this.#keys.read(key)
    this.#table.remove(lo, hi)
    if (from < 0 || memberIn(from) !== memberIn(to)) this.#carry(memberIn(to), lo, hi)
  }

  /** Any of the other members may have counted the key: by an earlier policy, or in another thread. */
  #carry(target: number, lo: number, hi: number): void {
    const counts = this.#choice.members.map(({ limiter }) => new KeyCountsInMemory(limiter, { lo, hi }))
    const [to] = counts.splice(target, 1)
    carryOver(to!, counts)
  }

  #unlink(key: string): void {
    const { lo, hi } = this.#keys.read(key)
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
      const { lo, hi } = this.#keys.read(key)
      this.#table.remove(lo, hi)
    }
  }
}
