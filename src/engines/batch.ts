import { Outcome } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import type { NativeBatches } from '../native/batches.js'
import type { InlineEngine } from './inline.js'

/** What a limiter says of many keys at once: an entry for each, in their order. */
export interface BatchDecision {
  readonly length: number
  /** 1 where the key was admitted, else 0. */
  readonly allowed: Uint8Array
  /** Units left after each decision, at the moment of it; only if it was asked for. */
  readonly remaining?: Int32Array
  /** As {@link Decision.retryAfterMs}, of entry `i`; worked out when asked. */
  retryAfterMs(i: number): number
}

/** The clock costs a third of a decision, and the reading of one a few microseconds ago is as good. */
const KEYS_PER_READING = 64

/** Where the addon stops sooner than after so many keys, most are new: the rest of the 64 is decided without it. */
const SHORT_RUN = 16

/** The costs of a batch: one for all, or one for each. */
export type Costs = number | ArrayLike<number>

const nextReading = (i: number): number => i - (i % KEYS_PER_READING) + KEYS_PER_READING

/** Decides every key in order, the same key twice too. What comes in has been checked. */
export class MadeBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array
  readonly #engine: InlineEngine
  readonly #fingerprints: Int32Array
  readonly #costs: Costs
  readonly #limit: number
  readonly #at: Float64Array

  constructor(engine: InlineEngine, fingerprints: Int32Array, costs: Costs, withRemaining: boolean) {
    const length = fingerprints.length / 2
    this.length = length
    this.allowed = new Uint8Array(length)
    if (withRemaining) this.remaining = new Int32Array(length)
    this.#engine = engine
    this.#fingerprints = fingerprints
    this.#costs = typeof costs === 'number' ? costs : new Float64Array(costs)
    this.#limit = engine.limit
    this.#at = new Float64Array(length)
    const { native } = engine
    if (length === 0) return
    if (native !== undefined && length >= native.leastKeys) this.#decideThrough(native)
    else {
      engine.reading.take()
      this.#decideFrom(0, length)
    }
  }

  retryAfterMs(i: number): number {
    checkEntry(i, this.length)
    if (this.allowed[i] === 1) return 0
    const lo = this.#fingerprints[2 * i]!
    const hi = this.#fingerprints[2 * i + 1]!
    return this.#engine.outlook.retryAfter(lo, hi, this.#costOf(i), this.#limit, this.#at[i]!)
  }

  /** All entries by the addon, but those that it leaves to us. */
  #decideThrough(native: NativeBatches): void {
    const { length } = this
    const { reading } = this.#engine
    const entries = {
      fingerprints: this.#fingerprints,
      costs: this.#costs as number | Float64Array,
      allowed: this.allowed,
      at: this.#at,
      remaining: this.remaining,
    }
    for (let from = 0; from < length; ) {
      if (native.readsClock || from % KEYS_PER_READING === 0) reading.take()
      const to = native.readsClock ? length : Math.min(length, nextReading(from))
      const stopped = native.admit(entries, from, to, this.#limit, reading.nowMs)
      this.#engine.tally(native.admitted, stopped - from - native.admitted)
      if (stopped === to) from = to
      else {
        // By the reading in hand, though the addon has taken newer ones: a new key takes another as it is given its place.
        const isShort = stopped - from < SHORT_RUN
        from = this.#decideFrom(stopped, isShort ? Math.min(to, nextReading(stopped)) : stopped + 1)
      }
    }
  }

  /** Entries by TypeScript, the first of them by the reading in hand. Returns `to`. */
  #decideFrom(from: number, to: number): number {
    for (let i = from; i < to; i++) {
      if (i % KEYS_PER_READING === 0 && i !== from) this.#engine.reading.take()
      this.#decide(i)
    }
    return to
  }

  #decide(i: number): void {
    const engine = this.#engine
    const lo = this.#fingerprints[2 * i]!
    const hi = this.#fingerprints[2 * i + 1]!
    const outcome = engine.decide(lo, hi, this.#costOf(i), this.#limit, -1)
    this.allowed[i] = outcome >= Outcome.UNCOUNTED ? 1 : 0
    this.#at[i] = engine.reading.nowMs
    if (this.remaining) this.remaining[i] = engine.outlook.left(lo, hi, this.#limit)
  }

  #costOf(i: number): number {
    return typeof this.#costs === 'number' ? this.#costs : this.#costs[i]!
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkEntry(i: unknown, length: number): void {
  if (Number.isInteger(i) && (i as number) >= 0 && (i as number) < length) return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'i', i, `an index from 0 to ${length - 1}`)
}
