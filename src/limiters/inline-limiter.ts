import { createRequire } from 'node:module'
import type { CheckManyOptions, CheckOptions, RuleChange, UsageOptions } from '../api/call-options.js'
import {
  blockMs,
  checkCallOptions,
  checkCost,
  checkOpen,
  checkOptions,
  checkPenalty,
  checkRemaining,
  closedError,
  foreignDecisionError,
  isDecision,
  mostPenalty,
  ownCosts,
} from '../api/checks.js'
import type { Limiter, LimiterStats } from '../api/limiter.js'
import type { Reservation } from '../api/reservation.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import { hearsRefusals, publishBatch, publishRefusal } from '../core/channels.js'
import type { Clock } from '../core/clock.js'
import { ofMemory, tellClosing } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { Outcome } from '../core/inline-decision.js'
import { lazily } from '../core/lazily.js'
import { admitted } from '../core/limited.js'
import type { TopOptions } from '../core/refusals.js'
import { hasOutcome, type RulePart, RulesDecision, shadowedRules, UNDECIDED } from '../core/rules-decision.js'
import type { TopKey } from '../core/top-keys.js'
import type { CallLimit, Engine, OwnDecision } from '../engines/engine.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import type { SavedCharge } from '../engines/inline/saved-charge.js'
import type { RuleMemory } from '../memory/arenas.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { BaseLimiter } from './base-limiter.js'
import type { InlineMember } from './group-member.js'
import { type Fingerprint, type LimiterFile, MemoryBackend } from './memory-backend.js'
import type { Receipt } from './receipts.js'

/** The charge of a decision, with the fingerprint of its key. */
interface InlineReceipt {
  readonly lo: number
  readonly hi: number
  readonly cost: number
  readonly allowed: boolean
  readonly parts: readonly SavedCharge[]
}

const require = createRequire(import.meta.url)
const groupMembers = lazily(() => require('./group-member.js') as typeof import('./group-member.js'))
const savedCharges = lazily(
  () => require('../engines/inline/saved-charge.js') as typeof import('../engines/inline/saved-charge.js'),
)
const reservations = lazily(() => require('../api/reservation.js') as typeof import('../api/reservation.js'))

/**
 * Decides on the calling thread. Every method checks its arguments, and an engine decides. `check` is the hot
 * path. Each subclass repeats it for its own class of engines, so that V8 sees one class at each call and
 * inlines it, also in a process with limiters of all three.
 */
export abstract class InlineLimiter<D extends OwnDecision>
  extends BaseLimiter<Fingerprint, MemoryBackend>
  implements Limiter
{
  /** Decides by all rules. */
  readonly #engine: Engine<D>

  /** @internal */
  constructor(
    memory: RuleMemory,
    engines: readonly RuleEngine[],
    engine: Engine<D>,
    clock: Clock,
    file?: LimiterFile,
  ) {
    super((owner) => new MemoryBackend(owner, 'Limiter', memory, engines, clock, file))
    this.#engine = engine
  }

  /** The clock of the decisions. @internal */
  get clock(): Clock {
    return this.backend.clock
  }

  /** Whether this limiter has decided it. @internal */
  owns(what: unknown): boolean {
    return this.backend.isOpen && this.#engine.owns(what)
  }

  async ready(): Promise<void> {
    checkOpen(this.backend)
  }

  abstract check(key: Key, cost?: number, options?: CheckOptions): Decision

  /** The policy is always the same. */
  async checkAsync(key: Key, cost?: number, options?: CheckOptions): Promise<Decision> {
    return this.check(key, cost, options)
  }

  checkOrThrow(key: Key, cost?: number, options?: CheckOptions): Decision {
    return admitted(this.check(key, cost, options))
  }

  reserve(key: Key, cost: number, options?: CheckOptions): Reservation {
    checkOpen(this.backend)
    checkCost(cost) // it has no default
    return this.#reserved(this.check(key, cost, options) as D, cost)
  }

  /** @internal */
  receiptOf(decision: Decision): Receipt | undefined {
    if (!this.engine.owns(decision) || !hasOutcome(decision, Outcome.CHARGED)) return undefined
    const parts = decision.rules as readonly RulePart[]
    const { lo, hi } = parts[0]!
    const cost = Math.max(...parts.map((part) => part.cost))
    const saved = parts.map(savedCharges().savedCharge)
    return { lo, hi, cost, allowed: decision.allowed, parts: saved } satisfies InlineReceipt
  }

  /** @internal */
  reservationOf(receipt: Receipt): Reservation | undefined {
    checkOpen(this.backend)
    const { lo, hi, cost, allowed, parts } = receipt as unknown as InlineReceipt
    const { engines } = this.backend
    if (parts.length !== engines.length) return undefined
    const [first, ...others] = engines.map((engine, i) => engine.restored(parts[i]!, lo, hi, cost))
    const decision =
      others.length === 0
        ? first
        : new RulesDecision(this.#engine, [first!, ...others], allowed ? UNDECIDED : 0)
    return this.#reserved(decision as unknown as D, cost)
  }

  #reserved(decision: D, cost: number): Reservation {
    return new (reservations().InlineReservation)({
      decision,
      cost,
      mostMore: mostPenalty(this.backend.names),
      isGivenBack: () => hasOutcome(decision, Outcome.GIVEN_BACK),
      change: (actualCost) => this.#change(decision, cost, actualCost),
    })
  }

  peek(key: Key, cost = 1, options?: CheckOptions): Decision {
    checkOpen(this.backend)
    checkCost(cost)
    const limit = this.#limitIn(options)
    const { lo, hi } = this.backend.keys.read(key)
    return this.engine.peek(lo, hi, cost, limit) // open: a getter may have closed the limiter
  }

  checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions = {},
  ): BatchDecision {
    checkOpen(this.backend)
    const { fingerprints } = this.backend.keys.pack(keys)
    checkOptions(options, ['remaining'])
    const { remaining = false } = options
    checkRemaining(remaining)
    const own = ownCosts(costs, fingerprints.length / 2)
    // `engine` once more: a getter may have closed the limiter.
    return publishBatch(
      this.engine.checkMany(fingerprints, own, remaining),
      keys,
      this.refusals,
      this.backend.names.names[0]!,
    )
  }

  usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): number {
    const { rule, own, ms } = this.usageRequest(key, lastMs, options)
    return this.backend.engines[rule]!.usage(own.lo, own.hi, ms)
  }

  refund(decision: Decision): number
  refund(key: Key, cost: number): number
  refund(what: Decision | Key, cost?: number): number {
    const engine = this.engine
    if (engine.owns(what)) {
      const given = engine.giveBack(what)
      this.backend.waiters.wake(what.lo, what.hi)
      return given
    }
    if (isDecision(what)) throw foreignDecisionError(what)
    checkCost(cost)
    const { lo, hi } = this.backend.keys.read(what as Key)
    const refunded = engine.changes.refund(lo, hi, cost)
    this.backend.waiters.wake(lo, hi)
    return refunded
  }

  penalize(key: Key, cost: number): boolean {
    const engine = this.engine
    checkPenalty(cost, this.backend.names)
    const { lo, hi } = this.backend.keys.read(key)
    return engine.changes.penalize(lo, hi, cost)
  }

  block(key: Key, ms: Duration): boolean {
    const engine = this.engine
    const forMs = blockMs(ms)
    const { lo, hi } = this.backend.keys.read(key)
    const isBlocked = engine.changes.block(lo, hi, forMs)
    this.backend.waiters.wake(lo, hi) // the new block may end earlier
    return isBlocked
  }

  unblock(key: Key): boolean {
    const engine = this.engine
    const { lo, hi } = this.backend.keys.read(key)
    const unblocked = engine.changes.unblock(lo, hi)
    this.backend.waiters.wake(lo, hi)
    return unblocked
  }

  clear(key: Key): void {
    const engine = this.engine
    const { lo, hi } = this.backend.keys.read(key)
    engine.changes.clear(lo, hi)
    this.backend.waiters.wake(lo, hi)
  }

  clearAll(): void {
    this.engine.changes.clearAll()
    this.backend.changedAll()
  }

  update(rule: string, change: RuleChange): void {
    this.open.update(rule, change)
  }

  stats(): LimiterStats {
    return ofMemory({ ...this.engine.statistics(), waiting: this.waiting }, this.backend.id)
  }

  top(options: TopOptions): TopKey[] {
    checkOpen(this.backend)
    return this.refusals.top(options)
  }

  async close(): Promise<void> {
    const { backend } = this
    if (!backend.isOpen) return
    tellClosing(this)
    this.refusals.close()
    this.#engine.close()
    backend.isOpen = false
    backend.waiters.close(closedError()) // before the release: it reads the memory
    backend.release()
  }

  /** The engine of all rules. @throws MillraceError `ERR_MILLRACE_CLOSED` @internal */
  get engine(): Engine<D> {
    checkOpen(this.backend)
    return this.#engine
  }

  /** The engines of the rules, in order. @internal */
  get ruleEngines(): readonly RuleEngine[] {
    return this.backend.engines
  }

  /** This limiter as a member of a group. @internal */
  toMember(name: string): InlineMember<D> {
    checkOpen(this.backend, `members.${name}`)
    return new (groupMembers().InlineMember)(name, this.backend, this.#engine, (...change) =>
      this.#change(...change),
    )
  }

  /** Decides by the options of a call. Each subclass's `check` calls it, off its hot path. @internal */
  protected checkBy(options: CheckOptions, key: Key, cost: number): Decision {
    const limit = this.#limitIn(options)
    if (typeof key === 'string') {
      const { lo, hi } = this.backend.keys.read(key)
      return this.refused(this.#decide(lo, hi, cost, limit), key)
    }
    const handle = this.backend.keys.owned(key)
    const decision = this.#decide(handle.lo, handle.hi, cost, limit, handle.way)
    handle.way = decision.way
    return this.refused(decision, key)
  }

  /** Publishes a refusal where somebody hears it. @internal */
  protected refused(decision: D, key: Key): D {
    return decision.allowed || !hearsRefusals() ? decision : publishRefusal(decision, key, this.refusals)
  }

  /** @internal */
  protected attempt({ lo, hi }: Fingerprint, cost: number, limit: CallLimit | undefined): Decision {
    return this.engine.withoutCharge(() => this.#decide(lo, hi, cost, limit))
  }

  /** Decides by the limit of one call, or by those of the rules. */
  #decide(lo: number, hi: number, cost: number, limit: CallLimit | undefined, hint?: number): D {
    const engine = this.engine
    if (limit === undefined) return engine.checkNow(lo, hi, cost, hint)
    return engine.checkWithin(limit, lo, hi, cost, hint)
  }

  /** Charges the key of a decision in addition, or gives back a part of the decision's charge. */
  #change(decision: D, cost: number, actualCost: number): number {
    const { lo, hi } = decision
    const engine = this.engine
    if (actualCost > cost) {
      return engine.changes.chargeMore(lo, hi, cost, actualCost, shadowedRules(decision))
    }
    const given = engine.giveBack(decision, cost - actualCost)
    this.backend.waiters.wake(lo, hi)
    return 0 - given
  }

  /** The limit of one call, if its options have one. */
  #limitIn(options: CheckOptions | undefined): CallLimit | undefined {
    return options === undefined ? undefined : checkCallOptions(options, ['limit'], this.backend.names).limit
  }
}
