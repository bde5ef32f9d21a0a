import type { AsyncLimiter } from '../api/async-limiter.js'
import type {
  CallOptions,
  CheckManyOptions,
  CheckOptions,
  RuleChange,
  UsageOptions,
} from '../api/call-options.js'
import {
  blockMs,
  checkCallOptions,
  checkCost,
  checkOpen,
  checkOptions,
  checkPenalty,
  checkRemaining,
  checkSignal,
  foreignDecisionError,
  isDecision,
  mostPenalty,
  type OwnOptions,
  ownCosts,
} from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import { type AsyncReservation, PoolReservation } from '../api/reservation.js'
import type { BatchDecision, Costs } from '../core/batch-decision.js'
import { hearsRefusals, presentRoute, publishBatch, publishRefusal } from '../core/channels.js'
import { COUNTED, tellClosing } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { MillraceError } from '../core/errors.js'
import { admitted } from '../core/limited.js'
import type { Signal } from '../core/on-abort.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { CallLimit } from '../engines/engine.js'
import type { Key, PackedKeys } from '../memory/keys.js'
import { type Backend, BaseLimiter } from './base-limiter.js'

/** Operations that decide. `try`: as `check`, but a refusal is not charged. `peek`: nothing is charged. */
export type Deciding = 'check' | 'try' | 'peek'
/** Other changes of a key, by a cost or, of a block, by milliseconds. */
export type KeyChange = 'refund' | 'penalize' | 'block' | 'unblock' | 'clear'

/** The keys of one call of `checkMany`, read. */
export interface KeyBatch {
  readonly length: number
  decide(costs: Costs, remaining: boolean, signal: Signal | undefined): Promise<BatchDecision>
}

/** Decides and counts elsewhere. */
export interface AsyncBackend<K> extends Backend<K> {
  ready(): Promise<void>
  /** May throw at once. */
  decide(op: Deciding, key: K, cost: number, options?: Partial<OwnOptions>): Promise<Decision>
  batchOf(keys: readonly Key[] | PackedKeys): KeyBatch
  /** Resolves with the units that were taken; of other changes with 1 if they took effect, else 0. */
  change(op: KeyChange, key: K, amount: number): Promise<number>
  usage(key: K, ms: number, rule: number): Promise<number>
  owns(what: unknown): what is Decision
  isGivenBack(decision: Decision): boolean
  /** Gives back `amount` of the charge of a decision, or all of it. */
  giveBack(decision: Decision, amount?: number): Promise<number>
  /** The same for a call that was aborted: it can't be made again. */
  forgive(decision: Decision): Promise<unknown>
  /** Charges the key of a decision in addition. */
  chargeMore(decision: Decision, cost: number, actualCost: number): Promise<number>
  clearAll(): Promise<void>
  update(rule: string, change: RuleChange): void
  close(): Promise<void>
}

/** A limiter that answers by promises. It checks the arguments, and its backend decides. */
export abstract class AsyncFacade<K, B extends AsyncBackend<K>>
  extends BaseLimiter<K, B>
  implements AsyncLimiter
{
  #closing: Promise<void> | undefined = undefined

  /** Whether its user publishes its refusals. @internal */
  protected get isSilent(): boolean {
    return false
  }

  /** Whether this limiter has decided it. @internal */
  owns(what: unknown): boolean {
    return this.backend.owns(what)
  }

  async ready(): Promise<void> {
    await this.open.ready()
  }

  check(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    const decided = this.#decide('check', key, cost, options)
    if (!hearsRefusals() || this.isSilent) return decided
    const route = presentRoute()
    return decided.then((decision) => publishRefusal(decision, key, this.refusals, undefined, route))
  }

  async checkOrThrow(key: Key, cost?: number, options?: CheckOptions & CallOptions): Promise<Decision> {
    return admitted(await this.check(key, cost, options))
  }

  peek(key: Key, cost = 1, options?: CheckOptions & CallOptions): Promise<Decision> {
    return this.#decide('peek', key, cost, options)
  }

  async reserve(key: Key, cost: number, options?: CheckOptions & CallOptions): Promise<AsyncReservation> {
    checkOpen(this.backend)
    checkCost(cost) // it has no default
    return this.reserved(await this.check(key, cost, options), cost)
  }

  /** What settles a decision. @internal */
  protected reserved(decision: Decision, cost: number): AsyncReservation {
    const { open } = this
    return new PoolReservation({
      decision,
      cost,
      mostMore: mostPenalty(open.names),
      isGivenBack: () => open.isGivenBack(decision),
      change: (actualCost) => this.#settle(decision, cost, actualCost),
    })
  }

  async checkMany(
    keys: readonly Key[] | PackedKeys,
    costs: Costs = 1,
    options: CheckManyOptions & CallOptions = {},
  ): Promise<BatchDecision> {
    const batch = this.open.batchOf(keys)
    checkOptions(options, ['remaining', 'signal'])
    const { remaining = false, signal } = options
    checkRemaining(remaining)
    checkSignal(signal)
    const own = ownCosts(costs, batch.length)
    checkOpen(this.backend) // once more: a getter may have closed the limiter
    return publishBatch(
      await batch.decide(own, remaining, signal),
      keys,
      this.refusals,
      this.backend.names.names[0]!,
    )
  }

  async usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): Promise<number> {
    const { rule, own, ms } = this.usageRequest(key, lastMs, options)
    return await this.backend.usage(own, ms, rule)
  }

  refund(decision: Decision): Promise<number>
  refund(key: Key, cost: number): Promise<number>
  async refund(what: Decision | Key, cost?: number): Promise<number> {
    const { open } = this
    if (open.owns(what)) return await open.giveBack(what)
    if (isDecision(what)) throw foreignDecisionError(what)
    checkCost(cost)
    return await this.#change('refund', what as Key, cost)
  }

  async penalize(key: Key, cost: number): Promise<boolean> {
    checkPenalty(cost, this.open.names)
    return (await this.#change('penalize', key, cost)) === 1
  }

  async block(key: Key, ms: Duration): Promise<boolean> {
    checkOpen(this.backend)
    return (await this.#change('block', key, blockMs(ms))) === 1
  }

  async unblock(key: Key): Promise<boolean> {
    return (await this.#change('unblock', key)) === 1
  }

  async clear(key: Key): Promise<void> {
    await this.#change('clear', key)
  }

  async clearAll(): Promise<void> {
    await this.open.clearAll()
  }

  async update(rule: string, change: RuleChange): Promise<void> {
    this.open.update(rule, change)
  }

  abstract stats(): Promise<LimiterStats>

  /** @internal */
  abstract [COUNTED](): LimiterStats

  async top(options: TopOptions): Promise<TopKey[]> {
    checkOpen(this.backend)
    return this.refusals.top(options)
  }

  /**
   * Waits for the pending requests, then ends what the limiter has opened: its workers, or its connections. Pending
   * `wait` calls reject. The counts stay where they are. A second call does nothing.
   * @example
   * ```ts
   * await limiter.close()
   * ```
   */
  close(): Promise<void> {
    this.backend.isOpen = false
    this.refusals.close()
    if (this.#closing === undefined) {
      this.#closing = this.backend.close()
      tellClosing(this, this.#closing)
    }
    return this.#closing
  }

  /** Every promise costs a request some time: this adds none to that of the backend. */
  #decide(
    op: Deciding,
    key: Key,
    cost: number,
    options: (CheckOptions & CallOptions) | undefined,
  ): Promise<Decision> {
    try {
      const { backend } = this
      checkOpen(backend)
      checkCost(cost)
      if (options === undefined) return backend.decide(op, backend.keys.read(key), cost)
      const own = checkCallOptions(options, ['limit', 'signal'], backend.names)
      const ownKey = backend.keys.read(key)
      checkOpen(backend) // once more: a getter may have closed the limiter
      return backend.decide(op, ownKey, cost, own)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** @internal */
  protected attempt(key: K, cost: number, limit: CallLimit | undefined): Promise<Decision> {
    return this.open.decide('try', key, cost, { limit })
  }

  /** @internal */
  protected override forgive(decision: Decision): void {
    unheard(this.backend.forgive(decision))
  }

  async #settle(decision: Decision, cost: number, actualCost: number): Promise<number> {
    if (actualCost > cost) return await this.backend.chargeMore(decision, cost, actualCost)
    return 0 - (await this.backend.giveBack(decision, cost - actualCost))
  }

  #change(op: KeyChange, key: Key, amount = 0): Promise<number> {
    const own = this.open.keys.read(key)
    return this.open.change(op, own, amount) // open: the key may be a proxy that has closed the limiter
  }
}

/** A change for a call that was aborted: no caller is left to hear of an error, either. */
export function unheard(change: Promise<unknown>): void {
  change.catch((error: unknown) => {
    if (!(error instanceof MillraceError)) throw error
  })
}
