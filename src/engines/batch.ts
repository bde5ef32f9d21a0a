import { type Decided, Outcome, secondsOf } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import type { NativeBatches } from '../native/batches.js'
import { KEYS_PER_READING, SEEN_WORDS } from '../native/native-params.js'
import type { Era } from './era.js'
import type { InlineEngine } from './inline.js'

/** What a limiter says of many keys at once: an entry for each, in their order. */
export interface BatchDecision {
  readonly length: number
  /** 1 where the key was admitted, else 0. */
  readonly allowed: Uint8Array
  /** Units left after each decision, at the moment of it; only if it was asked for. */
  readonly remaining?: Int32Array
  /** As {@link Decision.retryAfterMs}, of entry `i`; worked out when first asked. */
  retryAfterMs(i: number): number
  /** As {@link Decision.retryAfterSeconds}, of entry `i`. */
  retryAfterSeconds(i: number): number
}

/** Where the addon stops sooner than after so many keys, most are new: the rest of the 64 is decided without it. */
const SHORT_RUN = 16

/** The costs of a batch: one for all, or one for each. */
export type Costs = number | ArrayLike<number>

const nextReading = (i: number): number => i - (i % KEYS_PER_READING) + KEYS_PER_READING

/**
 * Decides every key in order, the same key twice too, each by the limit of its moment. What comes in has been checked, and is
 * nobody else's to change.
 */
export function decideBatch(
  engine: InlineEngine,
  fingerprints: Int32Array,
  costs: Costs,
  withRemaining: boolean,
): BatchDecision {
  const batch = new InlineBatch(engine, fingerprints, costs, withRemaining)
  batch.decideAll()
  return batch
}

class InlineBatch implements BatchDecision {
  readonly length: number
  readonly allowed: Uint8Array
  readonly remaining?: Int32Array
  readonly #engine: InlineEngine
  readonly #fingerprints: Int32Array
  readonly #costs: Costs
  /** By which each was decided. */
  readonly #limits: Int32Array
  readonly #at: Float64Array
  readonly #seen: Int32Array
  /** The eras in which entries were decided, each with the index of its first. */
  readonly #eras: { from: number; era: Era }[] = []
  /** `retryAfterMs` of the entries of which it has been found, else 0. */
  #found: Float64Array | undefined = undefined

  constructor(engine: InlineEngine, fingerprints: Int32Array, costs: Costs, withRemaining: boolean) {
    const length = fingerprints.length / 2
    this.length = length
    this.allowed = new Uint8Array(length)
    if (withRemaining) this.remaining = new Int32Array(length)
    this.#engine = engine
    this.#fingerprints = fingerprints
    this.#costs = costs
    this.#limits = new Int32Array(length)
    this.#at = new Float64Array(length)
    this.#seen = new Int32Array(SEEN_WORDS * length)
  }

  decideAll(): void {
    const { length } = this
    const { native, reading } = this.#engine
    if (length === 0) return
    if (native !== undefined && length >= native.leastKeys) this.#decideThrough(native)
    else {
      reading.take()
      this.#decideFrom(0, length)
    }
  }

  retryAfterMs(i: number): number {
    checkEntry(i, this.length)
    if (this.allowed[i] === 1) return 0
    this.#found ??= new Float64Array(this.length)
    const found = this.#found[i]! || this.#engine.estimates.retryAfter(this.#decided(i))
    this.#found[i] = found
    return found
  }

  retryAfterSeconds(i: number): number {
    return secondsOf(this.retryAfterMs(i))
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    const { length, allowed, remaining } = this
    const fields = remaining === undefined ? { length, allowed } : { length, allowed, remaining }
    return inspectAs('BatchDecision', fields, options, inspect)
  }

  /** An entry that was refused. */
  #decided(i: number): Decided {
    const at = SEEN_WORDS * i
    return {
      era: this.#eras.findLast(({ from }) => from <= i)!.era,
      lo: this.#fingerprints[2 * i]!,
      hi: this.#fingerprints[2 * i + 1]!,
      cost: this.#costOf(i),
      limit: this.#limits[i]!,
      at: this.#at[i]!,
      outcome: Outcome.REFUSED,
      way: this.#seen[at]!,
      adm: this.#seen[at + 1]!,
      tick: this.#seen[at + 2]!,
      until: this.#seen[at + 3]!,
    }
  }

  /** All entries by the addon, but those that it leaves to us. */
  #decideThrough(native: NativeBatches): void {
    const { length } = this
    const engine = this.#engine
    const { reading } = engine
    const entries = {
      fingerprints: this.#fingerprints,
      costs: this.#costs as number | Float64Array,
      allowed: this.allowed,
      at: this.#at,
      seen: this.#seen,
      remaining: this.remaining,
    }
    for (let from = 0; from < length; ) {
      if (native.readsClock || from % KEYS_PER_READING === 0) reading.take()
      const to = native.readsClock ? length : Math.min(length, nextReading(from))
      this.#noteEra(from)
      const { limit } = engine // the addon stops where it has changed
      const stopped = native.admit(entries, from, to, limit, reading.nowMs)
      this.#limits.fill(limit, from, stopped)
      engine.tally(native.admitted, stopped - from - native.admitted)
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
    const cost = this.#costOf(i)
    this.#noteEra(i)
    const { limit } = engine
    this.#limits[i] = limit
    const outcome = engine.decide(lo, hi, cost, limit, -1)
    this.allowed[i] = outcome >= Outcome.UNCOUNTED ? 1 : 0
    if (engine.way < 0) this.#keepNew(i, lo, hi, cost, outcome)
    else this.#keep(i, engine.decided(lo, hi, cost, limit, outcome))
    this.#at[i] = engine.reading.nowMs
  }

  #noteEra(from: number): void {
    const { era } = this.#engine
    if (this.#eras.at(-1)?.era !== era) this.#eras.push({ from, era })
  }

  /** Of a key that has no way, what somebody may ask is found at once. Not more: it reads the clock, which the addon would not. */
  #keepNew(i: number, lo: number, hi: number, cost: number, outcome: Outcome): void {
    if (this.remaining === undefined && outcome !== Outcome.NO_ROOM) return
    const figures = this.#engine.estimates.ofNewKey(lo, hi, cost, this.#limits[i]!, outcome)
    if (this.remaining) this.remaining[i] = figures.remaining
    if (outcome !== Outcome.NO_ROOM) return
    this.#found ??= new Float64Array(this.length)
    this.#found[i] = figures.retryAfterMs
  }

  #keep(i: number, decided: Decided): void {
    if (this.remaining) this.remaining[i] = this.#engine.estimates.remaining(decided)
    if (decided.outcome !== Outcome.REFUSED) return
    this.#seen.set([decided.way, decided.adm, decided.tick, decided.until ?? 0], SEEN_WORDS * i)
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
