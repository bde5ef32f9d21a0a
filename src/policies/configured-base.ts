import type { AsyncLimiter } from '../api/async-limiter.js'
import type { LimiterRule, UsageOptions } from '../api/call-options.js'
import { checkOpen, foreignDecisionError } from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import type { AsyncReservation, Reservation } from '../api/reservation.js'
import { memoryOf, ofMemory } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { NEAR_SHARE, nearShareOf } from '../core/near-limit.js'
import { DECIDERS } from '../core/store-calls.js'
import type { SharedLimiter, SharedPolicies } from '../engines/share.js'
import { type Receipt, receiptsOf } from '../limiters/receipts.js'
import { shownRules } from '../limiters/shown-rules.js'
import type { Hasher } from '../memory/hash.js'
import type { Key, KeyHandle, PackedKeys } from '../memory/keys.js'
import { TextKeys } from '../memory/text-keys.js'
import { isPending, pendingDecision } from './pending-decision.js'
import { type OwningLimiter, type PolicyChoice, totalOf } from './policy-choice.js'

/** What other threads of the limiter share. */
export type ShareOfPolicies = Omit<SharedPolicies, 'onMiss'>

/** What a limiter answers: some answer by promises. */
type Answer<L, T> = L extends AsyncLimiter ? Promise<T> : T

/** What limiters of both kinds can do. */
interface Member<L> extends OwningLimiter {
  readonly rule: LimiterRule
  readonly rules: readonly LimiterRule[]
  share(): SharedLimiter
  usage(key: Key, lastMs?: Duration, options?: UsageOptions): Answer<L, number>
  penalize(key: Key, cost: number): Answer<L, boolean>
  block(key: Key, ms: Duration): Answer<L, boolean>
}

/** Finds the limiter that counts a key by the policy that a configuration store has for it. That limiter then acts. */
export abstract class ConfiguredBase<L extends Member<L>> {
  readonly #kind: string
  readonly #choice: PolicyChoice<L>
  readonly #keys: TextKeys
  readonly #share: ShareOfPolicies | undefined

  constructor(
    kind: string,
    choice: PolicyChoice<L>,
    share?: ShareOfPolicies,
    hasher?: Hasher,
    keys?: TextKeys,
  ) {
    this.#kind = kind
    this.#choice = choice
    this.#keys = keys ?? new TextKeys(this, hasher)
    this.#share = share
  }

  /** Acts by the limiter that counts a key, with the key's text. @internal */
  protected abstract by<T>(key: Key, act: (limiter: L, text: string) => Answer<L, T>): Answer<L, T>

  /** @internal */
  protected get choice(): PolicyChoice<L> {
    return this.#choice
  }

  /** A policy belongs to the text of a key, and of its prefixes. @internal */
  protected get keys(): TextKeys {
    return this.#keys
  }

  get rule(): LimiterRule {
    return this.#choice.first.rule
  }

  get rules(): readonly LimiterRule[] {
    return this.#choice.first.rules
  }

  /** The limiter with the rules that made a decision. @internal */
  deciderOf(decision: Decision): { readonly rules: readonly LimiterRule[] } {
    return this.#choice.ownerOf(decision) ?? this
  }

  /** @internal */
  get [NEAR_SHARE](): number {
    return nearShareOf(this.#choice.first)
  }

  /** @internal */
  [DECIDERS](): readonly object[] {
    return this.#choice.members.map(({ limiter }) => limiter)
  }

  pack(keys: readonly Key[]): PackedKeys {
    checkOpen(this.#choice)
    return this.#keys.pack(keys).packed
  }

  handle(key: string): KeyHandle {
    checkOpen(this.#choice)
    return this.#keys.handle(key)
  }

  usage(key: Key, lastMs?: Duration, options: UsageOptions = {}): Answer<L, number> {
    return this.by(key, (limiter, text) => limiter.usage(text, lastMs, options))
  }

  penalize(key: Key, cost: number): Answer<L, boolean> {
    return this.by(key, (limiter, text) => limiter.penalize(text, cost))
  }

  block(key: Key, ms: Duration): Answer<L, boolean> {
    return this.by(key, (limiter, text) => limiter.block(text, ms))
  }

  share(): SharedLimiter {
    checkOpen(this.#choice)
    const shared = this.#choice.first.share() // refused by name where there is nothing to share
    if (this.#share === undefined) return shared
    return { ...shared, policies: { ...this.#share, onMiss: this.#choice.onMiss } }
  }

  /** @internal */
  receiptOf(decision: Decision): Receipt | undefined {
    const member = this.choice.members.find(({ limiter }) => limiter.owns(decision))
    if (member === undefined) return undefined
    const own = receiptsOf(member.limiter)?.receiptOf(decision)
    return own && { shape: member.shape.tag, own }
  }

  /** @internal */
  reservationOf({ shape, own }: Receipt): Reservation | AsyncReservation | undefined {
    checkOpen(this.#choice)
    const member = this.choice.members.find((each) => each.shape.tag === shape)
    return member && receiptsOf(member.limiter)?.reservationOf(own as Receipt)
  }

  async close(): Promise<void> {
    await this.#choice.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#choice.isOpen ? { default: shownRules(this.rules) } : { isClosed: true }
    return inspectAs(this.#kind, fields, options, inspect)
  }

  /** What made a decision; undefined: nothing did, as the policy of its key was not known. @internal */
  protected makerOf(decision: Decision): L | undefined {
    if (isPending(decision)) return undefined
    const owner = this.#choice.ownerOf(decision)
    if (owner === undefined) throw foreignDecisionError(decision)
    return owner
  }

  /** The refusal of a key whose policy is not known. @internal */
  protected pending(): Decision {
    return pendingDecision(this.rule.name, this.#choice.deadlineMs)
  }

  /** @internal */
  protected total(all: readonly LimiterStats[]): LimiterStats {
    const stats = { ...totalOf(all, this.#share?.space), config: this.#choice.statistics() }
    const memory = memoryOf(all[0]!)
    return memory === undefined ? stats : ofMemory(stats, memory)
  }
}
