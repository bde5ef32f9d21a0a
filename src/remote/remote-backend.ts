import type { RuleChange } from '../api/call-options.js'
import {
  checkOpen,
  checkRuleName,
  checkUpdate,
  closedError,
  type OwnOptions,
  type RuleNames,
} from '../api/checks.js'
import { rangeOf } from '../core/algorithms.js'
import { DecidedBatch } from '../core/base-batch.js'
import type { BatchDecision } from '../core/batch-decision.js'
import { publishPolicy } from '../core/channels.js'
import type { Decision } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import type { LimiterRule } from '../core/limiter-rule.js'
import type { Signal } from '../core/on-abort.js'
import type { Rule } from '../core/rule.js'
import { isUncounted } from '../core/uncounted-limit.js'
import { unitsBetween, unitsOf, wholeUnitsIn } from '../core/units.js'
import { verdictOf } from '../core/verdict.js'
import type { WaitRequest } from '../engines/waits/wait-queue.js'
import { type AsyncBackend, type KeyBatch, type KeyChange, unheard } from '../limiters/async-facade.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { TextKeys } from '../memory/text-keys.js'
import { aborting, checkNotAborted } from './aborting.js'
import { Decider, type DeciderPlan } from './decider.js'
import { checkShare, LocalShare } from './local-share.js'
import { Outage } from './outage.js'
import { together } from './remote-batch.js'
import { RemoteDecision } from './remote-decision.js'
import { isInWindowOf, type RemoteRule, shownRule, windowError } from './remote-rule.js'
import type { Asked, Asking, Changing, RemoteStore } from './remote-store.js'
import { WaitQueues } from './wait-queues.js'

/** What a limiter whose counts are elsewhere needs of its options. */
export interface RemotePlan extends DeciderPlan {
  /** The beginning of all names of keys. */
  readonly prefix: string
  /** Checks a rule with another window; undefined: its windows do not change. @throws MillraceError */
  readonly ruleOn?: ((rule: Rule) => RemoteRule) | undefined
  readonly nodes: number
  readonly maxKeys: number
  readonly testTime: (() => number) | undefined
}

/** A store that a limiter has opened, with what else the limiter keeps of it. */
export interface Opened {
  readonly store: RemoteStore
}

/** Counts in a store that other processes use, too. */
export class RemoteBackend<O extends Opened> implements AsyncBackend<string> {
  readonly kind: string
  isOpen = true
  names: RuleNames
  readonly keys: TextKeys
  readonly opened: O
  readonly decider: Decider
  readonly owner: object
  readonly #store: RemoteStore
  readonly #queues: WaitQueues
  readonly plan: RemotePlan
  #closing: Promise<void> | undefined

  constructor(owner: object, kind: string, plan: RemotePlan, open: (owner: object) => O) {
    const { rules, testTime } = plan
    this.owner = owner
    this.plan = plan
    this.kind = kind
    this.keys = new TextKeys(owner)
    this.#queues = new WaitQueues(testTime === undefined)
    // Before the connection, which nobody would close if the table can't be made.
    const local = this.#shareOf(rules)
    this.opened = open(owner)
    this.#store = this.opened.store
    this.names = namesOf(rules)
    this.decider = new Decider(owner, plan, this.#store, local)
    this.#store.onRecovery = () => void this.decider.report()
    this.#store.onRules = () => this.#changeRules()
  }

  /** Undefined if the process decides nothing alone, or the store's rules are not known yet. */
  #shareOf(rules: readonly RemoteRule[]): LocalShare | undefined {
    const { onOutage, nodes, maxKeys, testTime } = this.plan
    const isPossible = onOutage === 'local' && rules.every(({ rule }) => rule.limit >= nodes)
    return isPossible ? new LocalShare(rules, nodes, maxKeys, testTime) : undefined
  }

  #changeRules(): void {
    const { rules } = this.#store
    this.names = namesOf(rules)
    void this.decider.changeRules(rules, this.#shareOf(rules))
    this.#queues.wakeAll()
  }

  get nearLimit(): number | undefined {
    return this.plan.nearLimit
  }

  get rules(): readonly LimiterRule[] {
    return this.#store.rules.map(shownRule)
  }

  counted(rule: number): Rule {
    return this.#store.rules[rule]!.rule
  }

  pack(): PackedKeys {
    const expected = 'an array of keys for checkMany: for a server, keys are not packed'
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'pack', `a ${this.kind}`, expected)
  }

  share(): never {
    const expected = 'a limiter of its own with the same prefix in each thread'
    throw new MillraceError('ERR_MILLRACE_INVALID_SHARE', 'limiter', `a ${this.kind}`, expected)
  }

  wait(key: string, request: WaitRequest, signal: Signal | undefined): Promise<Decision> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return this.#queues.add(key, request, signal)
  }

  ready(): Promise<void> {
    return this.#store.ready()
  }

  /** Every promise costs a request some time: there is one for the store's answer and one for the decision. */
  decide(op: Asking, key: string, cost: number, options?: Partial<OwnOptions>): Promise<RemoteDecision> {
    checkNotAborted(options?.signal)
    return aborting(this.decider.decide(op, { key, cost }, options?.limit), options?.signal)
  }

  /** A decision by the limits of the rules that takes no call of the store. */
  decideNow(key: string, cost: number): RemoteDecision | undefined {
    return this.decider.decideNow({ key, cost })
  }

  batchOf(keys: readonly Key[] | PackedKeys): KeyBatch {
    const texts = this.keys.readAll(keys)
    return { length: texts.length, decide: (...request) => this.#decideAll(texts, ...request) }
  }

  async #decideAll(
    texts: readonly string[],
    ...[costs, remaining, signal]: Parameters<KeyBatch['decide']>
  ): Promise<BatchDecision> {
    const asked = texts.map((key, i): Asked => ({ key, cost: typeof costs === 'number' ? costs : costs[i]! }))
    checkNotAborted(signal)
    const decisions: RemoteDecision[] = []
    const calls = this.#store.divide(asked).map(async (indices) => {
      const decided = await this.decider.decideAll(
        'check',
        indices.map((i) => asked[i]!),
      )
      for (const [at, i] of indices.entries()) decisions[i] = decided[at]!
    })
    await aborting(
      together(calls, decisions, (decision) => unheard(this.giveBack(decision))),
      signal,
    )
    const isWide = this.names.units.some((unit) => unit !== undefined)
    const batch = new DecidedBatch(texts.length, remaining, isWide)
    for (const [i, decision] of decisions.entries()) batch.add(i, decision)
    return batch
  }

  async change(op: KeyChange, key: string, amount: number): Promise<number> {
    const changed = await this.#change(
      op,
      key,
      this.names.units.map((unit) => UNITS[op](amount, unit ?? 1)),
    )
    if (op === 'refund') return Math.max(...changed)
    const mayFail = op === 'unblock' || this.#store.mayHaveNoPlace
    return !mayFail || changed.some((was) => was > 0) ? 1 : 0
  }

  usage(key: string, ms: number, rule: number): Promise<number> {
    return this.#orOutage(this.#store.usage(key, ms, rule))
  }

  owns(what: unknown): what is RemoteDecision {
    return RemoteDecision.is(what) && (what as RemoteDecision).requested.owner === this.owner
  }

  isGivenBack(decision: RemoteDecision): boolean {
    return decision.isGivenBack
  }

  async giveBack(decision: RemoteDecision, amount = decision.requested.cost): Promise<number> {
    const { key, cost, limits } = decision.requested
    const units = this.names.units.map((unit) => unitsBetween(cost, cost - amount, unit ?? 1))
    if (decision.isGivenBack || !decision.isCharged || units.every((less) => less === 0)) return 0
    decision.giveBack() // before it is sent: a second refund meanwhile gives back nothing
    try {
      const settled = this.#settle(decision, cost - amount)
      const given =
        settled === undefined
          ? Math.max(...(await this.#change('giveBack', key, units, decision.receipts, limits)))
          : 0 - (await settled)
      this.decider.refunded(key, Math.min(amount, given))
      return given
    } catch (error) {
      if (!(error instanceof MillraceError && error.mayBeCharged)) decision.keep()
      throw error
    }
  }

  /** Charges all of a key, without statistics; undefined: nothing is left of it. Returns what gives it back. */
  async takeTurn(key: string): Promise<(() => Promise<number>) | undefined> {
    const cost = Math.min(...this.rules.map(({ limit, burst }) => burst ?? limit))
    const [turn] = await this.#orOutage(this.#store.ask('check', [{ key, cost }]))
    return turn!.allowed ? () => this.giveBack(turn!) : undefined
  }

  forgive(decision: RemoteDecision): Promise<unknown> {
    return this.giveBack(decision)
  }

  async chargeMore(decision: RemoteDecision, cost: number, actualCost: number): Promise<number> {
    const settled = this.#settle(decision, actualCost)
    if (settled !== undefined) return settled
    const charges = decision.parts.map((part) => verdictOf(part).allowed && !isUncounted(part.limit))
    const units = this.names.units.map((unit, i) =>
      charges[i] ? -unitsBetween(cost, actualCost, unit ?? 1) : 0,
    )
    if (units.every((more) => more === 0)) return 0
    const { key, limits } = decision.requested
    await this.#change('penalize', key, units, [], limits)
    return Math.max(...units.map((more, i) => more * (this.names.units[i] ?? 1)))
  }

  async clearAll(): Promise<void> {
    this.decider.forget()
    await this.#orOutage(this.#store.clearAll())
    this.decider.forget() // those that were refused meanwhile
    this.#queues.wakeAll()
  }

  /** Changes the limit of a rule. Of another window, it returns all rules, and changes nothing. */
  update(rule: string, change: RuleChange): readonly RemoteRule[] | undefined {
    const index = checkRuleName(rule, this.names.names)
    const before = this.#store.rules
    const { rule: present } = before[index]!
    const { limit = present.limit, window } = checkUpdate(change, {
      ...present,
      range: this.names.ranges[index]!,
    })
    checkOpen(this) // once more: a getter may have closed the limiter
    const isOther = window !== undefined && !isInWindowOf(present, window)
    const own = { ...present, ...(isOther && window), limit }
    const rules = before.map((remote, i) => {
      if (i !== index) return remote
      return isOther ? this.#ruleInWindow(own) : { ...remote, rule: own }
    })
    if (isOther) return rules
    this.#store.rules = rules
    try {
      this.decider.update(index, limit)
    } catch (error) {
      this.#store.rules = before // this process has no share of it
      throw error
    }
    this.#queues.wakeAll()
    publishPolicy(rule, undefined, limit * (present.unit ?? 1))
    return undefined
  }

  #ruleInWindow(rule: Rule): RemoteRule {
    const { ruleOn, onOutage, nodes } = this.plan
    if (ruleOn === undefined) throw windowError(rule.windowMs, 'the window of the service, which decides')
    if (onOutage === 'local') checkShare(rule.limit, rule.unit ?? 1, nodes)
    return ruleOn(rule)
  }

  /** What tells the windows of these rules from others, or of the present ones. */
  windowsOf(rules = this.#store.rules): string {
    return JSON.stringify(rules.map(({ rule: { limit, ...rule } }) => rule))
  }

  chargedKeys(): readonly string[] {
    return this.#store.chargedKeys?.() ?? []
  }

  /** Rejects the pending calls of `wait` for a key, or all of them. */
  rejectWaits(reason: Error, key?: string): void {
    this.#queues.reject(reason, key)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.rejectWaits(closedError())
    await this.#store.close()
    await this.decider.close()
  }

  #change(
    op: Changing,
    key: string,
    units: readonly number[],
    more?: readonly string[],
    limits?: readonly (number | undefined)[],
  ): Promise<number[]> {
    return this.#changing(key, () => this.#store.change(op, key, units, more, limits))
  }

  /** Undefined if the store has no call for it, or knows of no charge. */
  #settle(decision: RemoteDecision, actualCost: number): Promise<number> | undefined {
    const store = this.#store
    if (store.settle === undefined || !decision.isCharged) return undefined
    return this.#changing(decision.requested.key, () => store.settle!(decision, actualCost))
  }

  /** Changes a key, and wakes those who wait for it. */
  async #changing<T>(key: string, change: () => Promise<T>): Promise<T> {
    checkOpen(this)
    const changed = await this.#orOutage(change())
    this.decider.forget(key)
    this.#queues.wake(key)
    return changed
  }

  async #orOutage<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (outage) {
      if (!(outage instanceof Outage)) throw outage
      this.decider.statistics.noteOutage(outage)
      throw outage.toError()
    }
  }
}

const namesOf = (rules: readonly RemoteRule[]): RuleNames => ({
  names: rules.map(({ rule }) => rule.name),
  units: rules.map(({ rule }) => rule.unit),
  ranges: rules.map(({ rule }) => rangeOf(rule)),
})

/** What a change asks a store for. Milliseconds are not in units; -1: for ever. */
const UNITS: Readonly<Record<KeyChange, (amount: number, unit: number) => number>> = {
  refund: wholeUnitsIn,
  penalize: unitsOf,
  block: (ms) => (ms === Number.POSITIVE_INFINITY ? -1 : Math.ceil(ms)),
  unblock: () => 0,
  clear: () => 0,
}
