import type { RuleChange, WaitOptions } from '../api/call-options.js'
import { checkOpen } from '../api/checks.js'
import type { AsyncReservation } from '../api/reservation.js'
import { COUNTED } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import type { LimiterRule } from '../core/limiter-rule.js'
import type { Rules } from '../core/rule.js'
import { DECIDERS } from '../core/store-calls.js'
import { AsyncFacade } from '../limiters/async-facade.js'
import type { Receipt } from '../limiters/receipts.js'
import type { Key } from '../memory/keys.js'
import { type AsyncConfiguredLimiter, MOVED } from '../policies/async-configured-limiter.js'
import { withoutPolicies } from '../policies/on-servers.js'
import type { Windows } from '../policies/policy-plans.js'
import { shownTag } from '../policies/policy-shape.js'
import { type Opened, RemoteBackend, type RemotePlan } from './remote-backend.js'
import type { RemoteDecision } from './remote-decision.js'
import type { RemoteRule } from './remote-rule.js'
import type { RedisStatistics, RedisStats } from './remote-statistics.js'
import { restoredDecision, savedDecision } from './saved-decision.js'

/** Makes the same limiter with these rules, and names of keys that begin so. */
type Again = (own: Pick<RemotePlan, 'rules' | 'prefix'>) => RemoteMember

/** Counts on a server in the same windows for ever. */
class RemoteMember<O extends Opened = Opened> extends AsyncFacade<string, RemoteBackend<O>> {
  /** @internal */
  protected readonly again: Again | undefined

  constructor(open: (owner: object) => RemoteBackend<O>, again: Again | undefined) {
    super(open)
    this.again = again
  }

  /** @see ServerCounts @internal */
  change(rule: string, change: RuleChange): Windows | undefined {
    const { open } = this
    const rules = open.update(rule, change)
    if (rules === undefined) return undefined
    return { present: open.windowsOf(), text: open.windowsOf(rules), rules: ofRemote(rules) }
  }

  /** @see ServerCounts @internal */
  withRules(rules: Rules, tag: number): RemoteMember {
    const { ruleOn, prefix } = this.backend.plan
    return this.again!({
      rules: rules.map((rule) => ruleOn!(rule)),
      prefix: `${prefix}:${shownTag(tag)}`,
    })
  }

  /** @see TurnTaking @internal */
  takeTurn(key: string): Promise<(() => Promise<unknown>) | undefined> {
    return this.open.takeTurn(key)
  }

  /** @see ServerCounts @internal */
  moveWaits(key?: string): void {
    this.backend.rejectWaits(MOVED, key)
  }

  /** @internal */
  receiptOf(decision: Decision): Receipt | undefined {
    if (!this.backend.owns(decision) || !decision.isCharged || decision.isGivenBack) return undefined
    return savedDecision(decision)
  }

  /** @internal */
  reservationOf(receipt: Receipt): AsyncReservation {
    const decision = restoredDecision(this.backend.owner, receipt)
    return this.reserved(decision, decision.requested.cost)
  }

  /** @internal Decides by a cost and a limit of each rule. */
  decideEach(key: string, costs: readonly number[], limits: readonly number[]): Promise<RemoteDecision> {
    return this.backend.decider.decide('check', { key, cost: Math.max(...costs), costs }, limits)
  }

  /** @internal For groups. */
  get isClosed(): boolean {
    return !this.backend.isOpen
  }

  /** @internal For groups. */
  get statistics(): RedisStatistics {
    return this.backend.decider.statistics
  }

  /**
   * Returns the counters of this limiter, of this process.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const { allowed, denied, outages } = await limiter.stats()
   * if (outages > 0) console.warn('decided without the store', { allowed, denied, outages })
   * ```
   */
  async stats(): Promise<RedisStats> {
    checkOpen(this.backend)
    return this[COUNTED]()
  }

  /** @internal */
  [COUNTED](): RedisStats {
    const { decider, opened } = this.backend
    return decider.statistics.present(opened.store.counters, this.waiting)
  }
}

const ofRemote = (rules: readonly RemoteRule[]): Rules => rules.map(({ rule }) => rule) as unknown as Rules

/** What a limiter does by {@link AsyncConfiguredLimiter} from the first change of a window on. */
const MOVING = [
  'check',
  'checkOrThrow',
  'peek',
  'reserve',
  'checkMany',
  'wait',
  'usage',
  'refund',
  'penalize',
  'block',
  'unblock',
  'clear',
  'clearAll',
  'update',
  'ready',
  'receiptOf',
  'reservationOf',
] as const satisfies readonly (keyof AsyncConfiguredLimiter)[]

/** A limiter whose counts are elsewhere, in a store that other processes use too. */
export class RemoteLimiter<O extends Opened = Opened> extends RemoteMember<O> {
  #moving: AsyncConfiguredLimiter | undefined

  /**
   * @param title the name of the class that `console.log` prints
   * @param open makes the store. The limiter owns the decisions, and closes the store
   * @param again makes a limiter for other windows; undefined: there are none
   */
  constructor(title: string, plan: RemotePlan, open: (owner: object) => O, again?: Again) {
    super((owner) => new RemoteBackend(owner, title, plan, open), again)
  }

  override get rules(): readonly LimiterRule[] {
    return this.#moving?.rules ?? super.rules
  }

  override async update(rule: string, change: RuleChange): Promise<void> {
    const windows = this.change(rule, change)
    if (windows !== undefined) await this.#move().replaceDefault(windows, this.backend.chargedKeys())
  }

  override async wait(key: Key, options?: WaitOptions): Promise<Decision> {
    try {
      return await super.wait(key, options)
    } catch (reason) {
      if (reason !== MOVED || this.#moving === undefined) throw reason
      return this.#moving.wait(key, options)
    }
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#moving?.close()])
  }

  /** Whether `update` has changed a window. @internal */
  protected get isMoving(): boolean {
    return this.#moving !== undefined
  }

  /** @internal */
  [DECIDERS](): readonly object[] {
    return this.#moving?.[DECIDERS]() ?? []
  }

  /** @internal */
  override [COUNTED](): RedisStats {
    if (this.#moving === undefined) return super[COUNTED]()
    const { config, ...stats } = this.#moving[COUNTED]()
    return stats as RedisStats
  }

  /** From here on this limiter is the first of several, each with its own windows. */
  #move(): AsyncConfiguredLimiter {
    const { backend, refusals } = this
    const { keys, plan } = backend
    const first = new RemoteMember(() => backend, this.again)
    first.refusals = refusals
    const moving = withoutPolicies(first, ofRemote(plan.rules), keys, plan.maxKeys)
    this.#moving = moving
    for (const name of MOVING) {
      const act: (...args: never[]) => unknown = moving[name]
      Object.defineProperty(this, name, { value: act.bind(moving) })
    }
    return moving
  }
}
