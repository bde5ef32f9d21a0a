import type { BatchDecision } from '../core/batch-decision.js'
import type { Decision } from '../core/decision.js'
import { secondsOf } from '../core/decision-fields.js'
import type { DecisionSource } from '../core/decision-source.js'
import type { Inspect } from '../core/inspect.js'
import { checkEntry, inspectBatch } from '../engines/inline/batch.js'

/** The decisions of `checkMany` on keys with different policies. It keeps those that refused. */
export class ConfiguredBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array | Float64Array
  readonly #refusals = new Map<number, Decision>()
  readonly #sources = new Map<number, DecisionSource>()

  constructor(length: number, withRemaining: boolean, hasUnit: boolean) {
    this.length = length
    this.allowed = new Uint8Array(length)
    if (withRemaining) this.remaining = hasUnit ? new Float64Array(length) : new Int32Array(length)
  }

  add(i: number, decision: Decision): void {
    if (decision.allowed) this.allowed[i] = 1
    else this.#refusals.set(i, decision)
    if (decision.source !== undefined) this.#sources.set(i, decision.source)
    if (this.remaining !== undefined) this.remaining[i] = decision.remaining
  }

  retryAfterMs(i: number): number {
    checkEntry(i, this.length)
    return this.#refusals.get(i)?.retryAfterMs ?? 0
  }

  retryAfterSeconds(i: number): number {
    return secondsOf(this.retryAfterMs(i))
  }

  source(i: number): DecisionSource | undefined {
    checkEntry(i, this.length)
    return this.#sources.get(i)
  }

  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectBatch(this, options, inspect)
  }
}
