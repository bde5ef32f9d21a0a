import type { AsyncLimiter } from '../api/async-limiter.js'
import type { LimiterRule, UsageOptions, WaitOptions } from '../api/call-options.js'
import {
  checkOpen,
  checkUsageRule,
  checkWaitOptions,
  neverAdmittedError,
  type RuleNames,
  rulesWithin,
  usageMs,
} from '../api/checks.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import { loadParts } from '../core/lazily.js'
import { NEAR_SHARE } from '../core/near-limit.js'
import type { Signal } from '../core/on-abort.js'
import { Refusals } from '../core/refusals.js'
import { type CountedRule, ofRate } from '../core/rule-options.js'
import type { CallLimit } from '../engines/engine.js'
import type { SharedLimiter } from '../engines/share.js'
import type { WaitRequest } from '../engines/waits/wait-queue.js'
import type { Key, KeyHandle, PackedKeys } from '../memory/keys.js'
import { shownRules } from './shown-rules.js'

/** In which window a rule counts: a bucket in that in which it fills up. */
export type Counted = Pick<CountedRule, 'windowMs' | 'rate'>

/** What a limiter counts by. `K`: a key as the backend knows it. */
export interface Backend<K> {
  /** The name of the limiter's interface, or of its class, for `console.log`. */
  readonly kind: string
  isOpen: boolean
  readonly names: RuleNames
  /** The option of the limiter. */
  readonly nearLimit: number | undefined
  /** What is read of a string may be valid only until the next key is read. */
  readonly keys: { read(key: Key): K; handle(key: string): KeyHandle }
  /** The rules with their present limits, in order. */
  readonly rules: readonly LimiterRule[]
  /** @param rule its index */
  counted(rule: number): Counted
  pack(keys: readonly Key[]): PackedKeys
  share(): SharedLimiter
  wait(key: K, request: WaitRequest, signal: Signal | undefined): Promise<Decision>
}

/** The part of a limiter that decides nothing: its rules and keys, and the pending calls of `wait`. */
export abstract class BaseLimiter<K, B extends Backend<K>>
  implements Pick<AsyncLimiter, 'rule' | 'rules' | 'pack' | 'handle' | 'share' | 'wait' | 'close'>
{
  /** Private, so that a limiter in an object that is logged as JSON does not print its memory. */
  readonly #backend: B
  /** Pending calls of `wait`. */
  #waiting = 0
  #refusals = new Refusals()

  /** @internal @param open makes the backend of this limiter, which owns the handles of keys */
  constructor(open: (owner: object) => B) {
    this.#backend = open(this)
    loadParts()
  }

  /** Decides for `wait`: a refusal is never charged. @internal */
  protected abstract attempt(key: K, cost: number, limit: CallLimit | undefined): Decision | Promise<Decision>

  abstract close(): Promise<void>

  /** @internal */
  protected get backend(): B {
    return this.#backend
  }

  /** Of several limiters for one configuration store, those of the first one. @internal */
  get refusals(): Refusals {
    return this.#refusals
  }

  /** @internal */
  set refusals(shared: Refusals) {
    this.#refusals = shared
  }

  /** @internal */
  get [NEAR_SHARE](): number | undefined {
    return this.#backend.nearLimit
  }

  get rule(): LimiterRule {
    return this.rules[0]!
  }

  /** @internal */
  protected get waiting(): number {
    return this.#waiting
  }

  get rules(): readonly LimiterRule[] {
    return this.open.rules
  }

  pack(keys: readonly Key[]): PackedKeys {
    return this.open.pack(keys)
  }

  handle(key: string): KeyHandle {
    return this.open.keys.handle(key)
  }

  share(): SharedLimiter {
    return this.open.share()
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    const { keys, names } = this.open
    const { cost, limit, signal } = checkWaitOptions(options, names)
    const own = keys.read(typeof key === 'string' ? keys.handle(key) : key) // what is read of a handle stays valid
    const request: WaitRequest = {
      decide: () => this.attempt(own, cost, limit),
      giveBack: (decision) => this.forgive(decision),
      neverError: () => neverAdmittedError(cost, rulesWithin(this.rules, limit)),
    }
    const admitted = this.open.wait(own, request, signal) // open: a getter may have closed the limiter
    this.#waiting++
    try {
      return await admitted
    } finally {
      this.#waiting--
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const fields = this.#backend.isOpen ? shownRules(this.rules) : { isClosed: true }
    return inspectAs(this.#backend.kind, fields, options, inspect)
  }

  /** The backend, which is not closed. @throws MillraceError `ERR_MILLRACE_CLOSED` @internal */
  protected get open(): B {
    checkOpen(this.#backend)
    return this.#backend
  }

  /** Gives back the admission of a `wait()` call that was aborted meanwhile. @internal */
  protected forgive(_decision: Decision): void {}

  /** Checks the arguments of a `usage()` call, and returns them with the index of the rule. @internal */
  protected usageRequest(
    key: Key,
    lastMs: Duration | undefined,
    options: UsageOptions,
  ): { rule: number; own: K; ms: number } {
    const { keys, names } = this.open
    const rule = checkUsageRule(options, names.names)
    const counted = this.#backend.counted(rule)
    const ms = usageMs(lastMs, counted.windowMs, ofRate(counted, counted.windowMs))
    const own = keys.read(key)
    checkOpen(this.#backend) // once more: a getter may have closed the limiter
    return { rule, own, ms }
  }
}
