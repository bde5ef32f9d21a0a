import { tellStoreCall } from '../core/store-calls.js'
import { changesRefusals } from '../core/verdict.js'
import type { CallLimit } from '../engines/engine.js'
import type { LocalShare } from './local-share.js'
import { Outage } from './outage.js'
import { byOutage } from './outage-policy.js'
import type { OnOutage, OutageWatch } from './outage-watch.js'
import { RefusedKeys } from './refused-keys.js'
import type { RemoteDecision } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import { RedisStatistics } from './remote-statistics.js'
import type { Asked, Asking, RemoteStore } from './remote-store.js'
import { UncountedRequest } from './uncounted.js'

/** The options of a limiter that its decisions need. */
export interface DeciderPlan {
  readonly rules: readonly RemoteRule[]
  readonly onOutage: OnOutage
  readonly rememberRefusals: boolean
  readonly nearLimit: number | undefined
  readonly outages: OutageWatch
}

/** Decides by the store, by remembered refusals, and during an outage of the store as the option `onOutage` says. */
export class Decider {
  readonly statistics: RedisStatistics
  readonly #owner: object
  readonly #plan: DeciderPlan
  readonly #store: RemoteStore
  #refused: RefusedKeys | undefined
  #local: LocalShare | undefined

  constructor(owner: object, plan: DeciderPlan, store: RemoteStore, local: LocalShare | undefined) {
    this.#owner = owner
    this.#plan = plan
    this.statistics = new RedisStatistics(plan.outages, plan.nearLimit)
    this.#store = store
    this.#local = local
    this.#refused = this.#refusedBy(plan.rules)
  }

  #refusedBy(rules: readonly RemoteRule[]): RefusedKeys | undefined {
    const isPlain = !rules.some(({ rule }) => changesRefusals(rule))
    return this.#plan.rememberRefusals && isPlain ? new RefusedKeys() : undefined
  }

  /** The store has other rules. What this process owes by those before is not reported. */
  async changeRules(rules: readonly RemoteRule[], local: LocalShare | undefined): Promise<void> {
    const before = this.#local
    this.#local = local
    this.#refused = this.#refusedBy(rules)
    await before?.close()
  }

  /**
   * Decides one request; by `try` an attempt of `wait`.
   * @throws MillraceError (rejects) `ERR_MILLRACE_OUTAGE` if an attempt is refused without a reply, but may be charged
   */
  decide(op: Asking, asked: Asked, limit: CallLimit | undefined): Promise<RemoteDecision> {
    const request = UncountedRequest.of(limit, this.#store.rules)
    return request === undefined
      ? this.#decide(op, asked, limit)
      : this.#decideUncounted(request, op, asked, limit)
  }

  /** During an outage, the limits themselves decide. */
  async #decideUncounted(
    request: UncountedRequest,
    op: Asking,
    asked: Asked,
    limit: CallLimit | undefined,
  ): Promise<RemoteDecision> {
    const own = request.asked(asked)
    try {
      const decided = await this.#store.ask(request.op(op, asked.cost), [own], request.limit)
      return this.#note(
        op,
        decided.map((decision) => request.decision(decision)),
      )[0]!
    } catch (error) {
      return this.#orThrow(error, op, this.#inOutage(error, op, [own], limit)[0]!)
    }
  }

  #decide(op: Asking, asked: Asked, limit: CallLimit | undefined): Promise<RemoteDecision> {
    const { key, cost } = asked
    const sentMs = performance.now()
    const now = limit === undefined ? this.#decideNow(op, asked, sentMs) : undefined
    if (now !== undefined) return Promise.resolve(now)
    const { rules } = this.#store
    return this.#store.ask(op, [asked], limit).then(
      (decided) => {
        if (op !== 'peek') this.#noteCall(performance.now() - sentMs)
        const decision = this.#note(op, decided)[0]!
        // Another process may end a refusal that has no end by itself, such as a block.
        const isKept = !decision.allowed && decision.retryAfterMs < Number.POSITIVE_INFINITY
        if (isKept && limit === undefined && rules === this.#store.rules)
          this.#refused?.keep(key, decision, cost, sentMs)
        return decision
      },
      (error: unknown) => {
        return this.#orThrow(error, op, this.#inOutage(error, op, [asked], limit)[0]!)
      },
    )
  }

  /** Decides a request at once, if that takes no call of the store. */
  decideNow(asked: Asked): RemoteDecision | undefined {
    return this.#decideNow('check', asked, performance.now())
  }

  #decideNow(op: Asking, asked: Asked, nowMs: number): RemoteDecision | undefined {
    // A cost above the limit is refused for ever, not until the remembered refusal ends.
    const isKnown = this.#refused !== undefined && isWithin(asked.cost, this.#store.rules, undefined)
    const known = isKnown ? this.#refused!.find(asked.key, asked.cost, nowMs) : undefined
    const decision = known ?? this.#store.askNow?.(op, asked)
    if (decision === undefined || op === 'peek') return decision
    if (known === undefined) return this.#note(op, [decision])[0]
    this.statistics.decisions.count(known)
    return known
  }

  #orThrow(error: unknown, op: Asking, decision: RemoteDecision): RemoteDecision {
    // `wait` would ask again, and might be charged twice.
    if (op === 'try' && !decision.allowed && (error as Outage).mayBeCharged) throw (error as Outage).toError()
    return decision
  }

  decideAll(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    const sentMs = performance.now()
    return this.#store.ask(op, asked, limit).then(
      (decided) => {
        if (op !== 'peek') this.#noteCall(performance.now() - sentMs)
        return this.#note(op, decided)
      },
      (error: unknown) => this.#inOutage(error, op, asked, limit),
    )
  }

  /** A key has changed, or all of them. */
  forget(key?: string): void {
    if (key === undefined) this.#refused?.clear()
    else this.#refused?.forget(key)
  }

  /** A charge has been given back. */
  refunded(key: string, cost: number): void {
    this.#local?.refund(key, cost)
  }

  /**
   * The limit of a rule changes to so many units.
   * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` if this process has no share of it
   */
  update(index: number, limit: number): void {
    this.#local?.update(index, limit)
    this.#refused?.clear()
  }

  /** Tells Redis what this process has admitted meanwhile. */
  async report(): Promise<void> {
    await this.#local?.report((key, units, ageMs) =>
      this.#store.change('penalizeAgo', key, units, [String(ageMs)]),
    )
  }

  async close(): Promise<void> {
    await this.#local?.close()
  }

  /** The store has answered a call that decides. */
  #noteCall(ms: number): void {
    this.statistics.latency.record(ms)
    tellStoreCall(this.#owner, this.#plan.outages.store, ms)
  }

  /** The store has decided. */
  #note(op: Asking, decisions: RemoteDecision[]): RemoteDecision[] {
    if (op !== 'peek') {
      for (const decision of decisions) {
        if (decision.allowed && decision.isCharged) this.#local?.count(decision.requested)
        this.statistics.decisions.count(decision)
      }
    }
    if (this.#local?.owes) void this.report() // of an outage that was too short for a recovery
    return decisions
  }

  /** @throws what is no outage */
  #inOutage(
    error: unknown,
    op: Asking,
    asked: readonly Asked[],
    limit: CallLimit | undefined,
  ): RemoteDecision[] {
    if (!(error instanceof Outage)) throw error
    this.statistics.noteOutage(error)
    const decisions = asked.map((each) => this.#withoutStore(op, each, limit, error))
    if (op !== 'peek') for (const decision of decisions) this.statistics.decisions.count(decision)
    return decisions
  }

  #withoutStore(op: Asking, asked: Asked, limit: CallLimit | undefined, outage: Outage): RemoteDecision {
    const { rules } = this.#store
    const limits = this.#store.unitLimits(limit)
    const local = this.#local?.decide(this.#owner, asked, limit, op !== 'peek')
    // A cost above this process's share is refused without end here, but not by the store.
    const isOutage =
      local === undefined ||
      (local.retryAfterMs === Number.POSITIVE_INFINITY && isWithin(asked.cost, rules, limits))
    if (!isOutage) return local
    return byOutage(this.#owner, asked, rules, limits, this.#plan.onOutage === 'open', outage)
  }
}

const isWithin = (
  cost: number,
  rules: readonly RemoteRule[],
  limits: readonly (number | undefined)[] | undefined,
): boolean => rules.every(({ rule }, i) => Math.ceil(cost / (rule.unit ?? 1)) <= (limits?.[i] ?? rule.limit))
