import type { BatchDecision } from './batch-decision.js'
import type { Decision } from './decision.js'
import { secondsOf } from './decision-fields.js'
import type { DecisionSource } from './decision-source.js'
import { MillraceError } from './errors.js'
import { type Inspect, inspectAs } from './inspect.js'

type Remaining = Int32Array | Float64Array

/** The part of a batch that is the same for all. */
export abstract class BaseBatch<R extends Remaining = Remaining> implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: R

  constructor(length: number, remaining?: R, allowed: Uint8Array = new Uint8Array(length)) {
    this.length = length
    this.allowed = allowed
    if (remaining) this.remaining = remaining
  }

  /** `retryAfterMs` of the key at a checked index. */
  protected abstract waitOf(i: number): number

  /** `source` of the key at a checked index. */
  protected sourceOf(_: number): DecisionSource | undefined {
    return undefined
  }

  retryAfterMs(i: number): number {
    this.#check(i)
    return this.waitOf(i)
  }

  retryAfterSeconds(i: number): number {
    return secondsOf(this.retryAfterMs(i))
  }

  source(i: number): DecisionSource | undefined {
    this.#check(i)
    return this.sourceOf(i)
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const { length, allowed, remaining } = this
    const fields = remaining === undefined ? { length, allowed } : { length, allowed, remaining }
    return inspectAs('BatchDecision', fields, options, inspect)
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
  #check(i: unknown): void {
    if (Number.isInteger(i) && (i as number) >= 0 && (i as number) < this.length) return
    const expected = `an index from 0 to ${this.length - 1}`
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'i', i, expected)
  }
}

/** A batch of decisions that are made one by one. It keeps the refusals, which compute `retryAfterMs` when it is read. */
export class DecidedBatch extends BaseBatch {
  readonly #kept = new Map<number, Decision>()

  /** @param hasUnit whether what remains is a quantity */
  constructor(length: number, withRemaining: boolean, hasUnit: boolean) {
    const remaining = hasUnit ? new Float64Array(length) : new Int32Array(length)
    super(length, withRemaining ? remaining : undefined)
  }

  add(i: number, decision: Decision): void {
    if (decision.allowed) this.allowed[i] = 1
    if (!decision.allowed || decision.source !== undefined) this.#kept.set(i, decision)
    if (this.remaining !== undefined) this.remaining[i] = decision.remaining
  }

  protected waitOf(i: number): number {
    return this.#kept.get(i)?.retryAfterMs ?? 0
  }

  protected override sourceOf(i: number): DecisionSource | undefined {
    return this.#kept.get(i)?.source
  }
}
