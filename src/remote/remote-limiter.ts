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
  blockMs,
  checkCallOptions,
  checkCost,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkRuleName,
  checkSignal,
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
} from '../api/checks.js'
import { type AsyncReservation, PoolReservation } from '../api/reservation.js'
import { rangeOf } from '../core/algorithms.js'
import { DecidedBatch } from '../core/base-batch.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { admitted } from '../core/limited.js'
import { checkOtherLimit } from '../core/rule.js'
import { isUncounted } from '../core/uncounted-limit.js'
import { unitsBetween, unitsOf, wholeUnitsIn } from '../core/units.js'
import { verdictOf } from '../core/verdict.js'
import type { SharedLimiter } from '../engines/share.js'
import { shownRules } from '../limiters/shown-rules.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { type TextHandle, TextKeys } from '../memory/text-keys.js'
import { aborting, checkNotAborted } from './aborting.js'
import { Decider, type DeciderPlan } from './decider.js'
import { LocalShare } from './local-share.js'
import { Outage } from './outage.js'
import { together } from './remote-batch.js'
import { RemoteDecision } from './remote-decision.js'
import { refuseWindowChange, shownRule } from './remote-rule.js'
import type { RedisStatistics, RedisStats } from './remote-statistics.js'
import type { Asked, Asking, Changing, RemoteStore } from './remote-store.js'
import { WaitQueues } from './wait-queues.js'

/** What a limiter whose counts are elsewhere needs of its options. */
export interface RemotePlan extends DeciderPlan {
  readonly nodes: number
  readonly maxKeys: number
  readonly testTime: (() => number) | undefined
}

/** A limiter whose counts are elsewhere, in a store that other processes use too. */
export class RemoteLimiter implements AsyncLimiter {
  readonly #title: string
  readonly #store: RemoteStore
  readonly #keys = new TextKeys(this)
  readonly #names: RuleNames
  readonly #decider: Decider
  readonly #queues: WaitQueues
  #closing: Promise<void> | undefined

  /**
   * @param title the name of the class that `console.log` prints
   * @param open makes the store. The limiter owns the decisions, and closes the store
   */
  constructor(title: string, plan: RemotePlan, open: (owner: object) => RemoteStore) {
    const { rules, onOutage, nodes, maxKeys, testTime } = plan
    this.#title = title
    this.#queues = new WaitQueues(plan.testTime === undefined)
    // Before the connection, which nobody would close if the table can't be made.
    const local = onOutage === 'local' ? new LocalShare(rules, nodes, maxKeys, testTime) : undefined
    this.#store = open(this)
    const names = rules.map(({ rule }) => rule.name)
    const units = rules.map(({ rule }) => rule.unit)
    this.#names = { names, units, ranges: rules.map(({ rule }) => rangeOf(rule)) }
    this.#decider = new Decider(this, plan, this.#store, local)
    this.#store.onRecovery = () => void this.#decider.report()
  }

  /** @internal For groups. */
  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  /** @internal For groups. */
  get statistics(): RedisStatistics {
    return this.#decider.statistics
  }

  /** @internal For configured limiters. */
  owns(what: unknown): what is RemoteDecision {
    return RemoteDecision.is(what) && (what as RemoteDecision).requested.owner === this
  }

  async ready(): Promise<void> {
    this.#checkOpen()
    await this.#store.ready()
  }

  get rule(): LimiterRule {
    return this.rules[0]!
  }

  get rules(): readonly LimiterRule[] {
    this.#checkOpen()
    return this.#store.rules.map(shownRule)
  }

  check(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    return this.#decide('check', key, cost, options)
  }

  async checkOrThrow(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision> {
    return admitted(await this.check(key, cost, options))
  }

  peek(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    return this.#decide('peek', key, cost, options)
  }

  async reserve(key: Key, cost: number, options?: CheckOptions & CallOptions): Promise<AsyncReservation> {
    this.#checkOpen()
    checkCost(cost) // it has no default
    const decision = await this.#decide('check', key, cost, options)
    return new PoolReservation({
      decision,
      cost,
      mostMore: mostPenalty(this.#names),
      isGivenBack: () => decision.isGivenBack,
      change: (actualCost) => this.#settle(decision, cost, actualCost),
    })
  }

  async checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions & CallOptions = {},
  ): Promise<BatchDecision> {
    this.#checkOpen()
    const texts = this.#keys.readAll(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    checkRemaining(remaining)
    checkSignal(signal)
    const own = ownCosts(costs, texts.length)
    this.#checkOpen() // once more: a getter may have closed the limiter
    const asked = texts.map((key, i): Asked => ({ key, cost: typeof own === 'number' ? own : own[i]! }))
    checkNotAborted(signal)
    const decisions: RemoteDecision[] = []
    const calls = this.#store.divide(asked).map(async (indices) => {
      const decided = await this.#decider.decideAll(
        'check',
        indices.map((i) => asked[i]!),
      )
      for (const [at, i] of indices.entries()) decisions[i] = decided[at]!
    })
    await aborting(
      together(calls, decisions, (decision) => this.#forgive(decision)),
      signal,
    )
    const isWide = this.#names.units.some((unit) => unit !== undefined)
    const batch = new DecidedBatch(texts.length, remaining, isWide)
    for (const [i, decision] of decisions.entries()) batch.add(i, decision)
    return batch
  }

  pack(): PackedKeys {
    this.#checkOpen()
    const expected = 'an array of keys for checkMany: for a server, keys are not packed'
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'pack', `a ${this.#title}`, expected)
  }

  share(): SharedLimiter {
    this.#checkOpen()
    const expected = 'a limiter of its own with the same prefix in each thread'
    throw new MillraceError('ERR_MILLRACE_INVALID_SHARE', 'limiter', `a ${this.#title}`, expected)
  }

  handle(key: string): TextHandle {
    this.#checkOpen()
    return this.#keys.handle(key)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    this.#checkOpen()
    const { cost, limit, signal } = checkWaitOptions(options, this.#names)
    const asked = { key: this.#keys.read(key), cost }
    this.#checkOpen() // once more: a getter may have closed the limiter
    const request = {
      decide: () => this.#decider.decide('try', asked, limit),
      giveBack: (decision: Decision) => this.#forgive(decision as RemoteDecision),
      neverError: () => neverAdmittedError(cost, rulesWithin(this.rules, limit)),
    }
    if (signal?.aborted) throw signal.reason
    return this.#queues.add(asked.key, request, signal)
  }

  async usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): Promise<number> {
    this.#checkOpen()
    const index = checkUsageRule(options, this.#names.names)
    const ms = usageMs(lastMs, this.#store.rules[index]!.rule.windowMs, this.rules[index]!.windowMs)
    const text = this.#keys.read(key)
    this.#checkOpen() // once more: a getter may have closed the limiter
    return this.#orOutage(this.#store.usage(text, ms, index))
  }

  refund(decision: Decision): Promise<number>
  refund(key: Key, cost: number): Promise<number>
  async refund(what: Decision | Key, cost?: number): Promise<number> {
    this.#checkOpen()
    if (this.owns(what)) return this.#giveBack(what, what.requested.cost)
    if (isDecision(what)) throw foreignDecisionError(what)
    checkCost(cost)
    const units = this.#names.units.map((unit) => wholeUnitsIn(cost, unit ?? 1))
    return Math.max(...(await this.#change('refund', what as Key, units)))
  }

  async penalize(key: Key, cost: number): Promise<boolean> {
    this.#checkOpen()
    checkPenalty(cost, this.#names)
    const units = this.#names.units.map((unit) => unitsOf(cost, unit ?? 1))
    await this.#change('penalize', key, units)
    return true
  }

  async block(key: Key, ms: Duration): Promise<boolean> {
    this.#checkOpen()
    const forMs = blockMs(ms)
    await this.#change('block', key, this.#each(forMs === Number.POSITIVE_INFINITY ? -1 : Math.ceil(forMs)))
    return true
  }

  async unblock(key: Key): Promise<boolean> {
    this.#checkOpen()
    return (await this.#change('unblock', key, this.#each(0))).some((was) => was > 0)
  }

  async clear(key: Key): Promise<void> {
    this.#checkOpen()
    await this.#change('clear', key, this.#each(0))
  }

  async clearAll(): Promise<void> {
    this.#checkOpen()
    this.#decider.forget()
    await this.#orOutage(this.#store.clearAll())
    this.#decider.forget() // those that were refused meanwhile
    this.#queues.wakeAll()
  }

  async update(rule: string, change: RuleChange): Promise<void> {
    this.#checkOpen()
    const index = checkRuleName(rule, this.#names.names)
    checkOptions(change, ['limit', 'window', 'granularity'], 'change')
    const { limit, window, granularity } = change
    if (window !== undefined) refuseWindowChange('window', window)
    if (granularity !== undefined) refuseWindowChange('granularity', granularity)
    const { unit } = this.#store.rules[index]!.rule
    const own = checkOtherLimit(unit, limit, this.#names.ranges[index]!)
    this.#checkOpen() // once more: a getter may have closed the limiter
    const before = this.#store.rules
    this.#store.rules = before.map((remote, i) =>
      i === index ? { ...remote, rule: { ...remote.rule, limit: own } } : remote,
    )
    try {
      this.#decider.update(index, own)
    } catch (error) {
      this.#store.rules = before // this process has no share of it
      throw error
    }
    this.#queues.wakeAll()
  }

  async stats(): Promise<RedisStats> {
    this.#checkOpen()
    return this.#decider.statistics.present(this.#store.counters)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#closing === undefined ? shownRules(this.rules) : { isClosed: true }
    return inspectAs(this.#title, fields, options, inspect)
  }

  async #close(): Promise<void> {
    this.#queues.rejectAll(closedError())
    await this.#store.close()
    await this.#decider.close()
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw closedError()
  }

  /** Every promise costs a request some time: there is one for the store's answer and one for the decision. */
  #decide(
    op: Asking,
    key: Key,
    cost: number,
    options: (CheckOptions & CallOptions) | undefined,
  ): Promise<RemoteDecision> {
    try {
      this.#checkOpen()
      checkCost(cost)
      const own =
        options === undefined ? undefined : checkCallOptions(options, ['limit', 'signal'], this.#names)
      const asked = { key: this.#keys.read(key), cost }
      this.#checkOpen() // once more: a getter may have closed the limiter
      checkNotAborted(own?.signal)
      return aborting(this.#decider.decide(op, asked, own?.limit), own?.signal)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #settle(decision: RemoteDecision, cost: number, actualCost: number): Promise<number> {
    if (actualCost <= cost) return 0 - (await this.#giveBack(decision, cost - actualCost))
    const charges = decision.parts.map((part) => verdictOf(part).allowed && !isUncounted(part.limit))
    const units = this.#names.units.map((unit, i) =>
      charges[i] ? -unitsBetween(cost, actualCost, unit ?? 1) : 0,
    )
    if (units.every((more) => more === 0)) return 0
    const { key, limits } = decision.requested
    await this.#change('penalize', key, units, [], limits)
    return Math.max(...units.map((more, i) => more * (this.#names.units[i] ?? 1)))
  }

  /** Gives back up to `amount` of a decision's charge, in whole units. Returns how much. */
  async #giveBack(decision: RemoteDecision, amount: number): Promise<number> {
    const { key, cost, limits } = decision.requested
    const units = this.#names.units.map((unit) => unitsBetween(cost, cost - amount, unit ?? 1))
    if (decision.isGivenBack || !decision.isCharged || units.every((less) => less === 0)) return 0
    decision.giveBack() // before it is sent: a second refund meanwhile gives back nothing
    try {
      const given = Math.max(...(await this.#change('giveBack', key, units, decision.receipts, limits)))
      this.#decider.refunded(key, Math.min(amount, given))
      return given
    } catch (error) {
      if (!(error instanceof MillraceError && error.mayBeCharged)) decision.keep()
      throw error
    }
  }

  /** Gives back a charge of which no caller hears. None is left to hear of an error, either. */
  #forgive(decision: RemoteDecision): void {
    this.#giveBack(decision, decision.requested.cost).catch((error: unknown) => {
      if (!(error instanceof MillraceError)) throw error
    })
  }

  /** Changes a key, and wakes those who wait for it. */
  async #change(
    op: Changing,
    key: Key,
    units: readonly number[],
    more?: readonly string[],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    const text = this.#keys.read(key)
    this.#checkOpen() // once more: a getter may have closed the limiter
    const changed = await this.#orOutage(this.#store.change(op, text, units, more, limits))
    this.#decider.forget(text)
    this.#queues.wake(text)
    return changed
  }

  async #orOutage<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (outage) {
      if (!(outage instanceof Outage)) throw outage
      this.#decider.statistics.noteOutage(outage)
      throw outage.toError()
    }
  }

  #each(units: number): number[] {
    return this.#names.names.map(() => units)
  }
}
