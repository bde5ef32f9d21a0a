import { BaseBatch } from '../../core/base-batch.js'
import type { BatchDecision, Costs } from '../../core/batch-decision.js'
import { type Decided, type EngineEra, Outcome } from '../../core/inline-decision.js'
import { again } from '../../core/tries.js'
import { KEYS_PER_READING, SEEN_WORDS } from '../../native/native-params.js'
import type { DecidingEngine } from './deciding-engine.js'
import { lastDecided } from './last-decision.js'

/** If the addon stops after fewer keys, most keys are new. TypeScript then decides the rest of the 64. */
const SHORT_RUN = 16

const nextReading = (i: number): number => i - (i % KEYS_PER_READING) + KEYS_PER_READING

/**
 * Decides every key in order, also a key that stands twice, by the limit at that moment. The arguments have
 * been checked, and no other code changes them.
 */
export function decideBatch(
  engine: DecidingEngine,
  fingerprints: Int32Array,
  costs: Costs,
  withRemaining: boolean,
): BatchDecision {
  const batch = new InlineBatch(engine, fingerprints, costs, withRemaining)
  batch.decideAll()
  return batch
}

class InlineBatch extends BaseBatch<Int32Array> {
  readonly #engine: DecidingEngine
  readonly #fingerprints: Int32Array
  readonly #costs: Costs
  /** By index: the limit of the decision, its reading of the clock, and what its figures need later. */
  readonly #limits: Int32Array
  readonly #at: Float64Array
  readonly #kept: Int32Array
  /** The eras of the decisions, each with the index of its first decision. */
  readonly #eras: { from: number; era: EngineEra }[] = []
  /** By index: `retryAfterMs`, or 0 if it is not computed. */
  #retryAfterMs: Float64Array | undefined = undefined

  constructor(engine: DecidingEngine, fingerprints: Int32Array, costs: Costs, withRemaining: boolean) {
    const length = fingerprints.length / 2
    super(length, withRemaining ? new Int32Array(length) : undefined)
    this.#engine = engine
    this.#fingerprints = fingerprints
    this.#costs = costs
    this.#limits = new Int32Array(length)
    this.#at = new Float64Array(length)
    this.#kept = new Int32Array(SEEN_WORDS * length)
  }

  decideAll(): void {
    const { length } = this
    const { native, reading } = this.#engine
    if (length === 0) return
    if (native !== undefined && length >= native.leastKeys) this.#decideNatively()
    else {
      reading.take()
      this.#decideFrom(0, length)
    }
  }

  protected waitOf(i: number): number {
    if (this.allowed[i] === 1) return 0
    this.#retryAfterMs ??= new Float64Array(this.length)
    const found = this.#retryAfterMs[i]! || this.#untilAdmitted(this.#decided(i))
    this.#retryAfterMs[i] = found
    return found
  }

  #untilAdmitted(decided: Decided): number {
    return decided.era.estimates.retryAfter(decided)
  }

  /** The decision at an index. It is a refusal. */
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
      way: this.#kept[at]!,
      adm: this.#kept[at + 1]!,
      tick: this.#kept[at + 2]!,
      until: this.#kept[at + 3]!,
    }
  }

  /** Decides all keys: the addon those that it can, TypeScript the others. */
  #decideNatively(): void {
    const { length } = this
    const engine = this.#engine
    const { near, reading } = engine
    const entries = {
      fingerprints: this.#fingerprints,
      costs: this.#costs as number | Float64Array,
      allowed: this.allowed,
      at: this.#at,
      seen: this.#kept,
      remaining: this.remaining,
    }
    for (let from = 0; from < length; ) {
      const { limit, native } = engine // the addon stops if the limit or the record changes
      if (native?.readsClock !== false || from % KEYS_PER_READING === 0) reading.take()
      if (native === undefined) return void this.#decideFrom(from, length) // it can't handle another record
      const to = native.readsClock ? length : Math.min(length, nextReading(from))
      this.#recordEra(from)
      const { suspectFrom, nearFrom } = near.bounds // by the limit that has just been read
      native.countNear(suspectFrom, nearFrom)
      const stopped = native.admit(entries, from, to, limit, reading.nowMs)
      this.#limits.fill(limit, from, stopped)
      engine.tally(native.admitted, stopped - from - native.admitted)
      engine.tallyNear(native.near)
      if (native.admitted < stopped - from) engine.tallyBlocked(this.#blockedIn(from, stopped))
      if (stopped === to) from = to
      else {
        // By the present reading, though the addon has taken newer ones: an insertion takes another one.
        const isShort = stopped - from < SHORT_RUN
        from = this.#decideFrom(stopped, isShort ? Math.min(to, nextReading(stopped)) : stopped + 1)
      }
    }
  }

  /** How many keys that the addon has refused were blocked. */
  #blockedIn(from: number, to: number): number {
    const { blockMask } = this.#engine.last
    let blocked = 0
    for (let i = from; i < to; i++) {
      if (this.allowed[i] === 1 || (this.#kept[SEEN_WORDS * i + 1]! & blockMask) !== blockMask) continue
      const decided = this.#decided(i)
      if (decided.era.estimates.isBlocked(decided)) blocked++
    }
    return blocked
  }

  /** Decides keys in TypeScript, the first one by the present reading. Returns `to`. */
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
    this.#recordEra(i)
    let { limit } = engine
    let outcome = engine.decide(lo, hi, cost, limit, -1)
    for (let tries = 0; outcome === Outcome.OUTDATED; tries = again(tries)) {
      limit = engine.limit
      this.#recordEra(i)
      outcome = engine.decide(lo, hi, cost, limit, -1)
    }
    this.#limits[i] = limit
    this.allowed[i] = outcome >= Outcome.UNCOUNTED ? 1 : 0
    if (engine.way < 0) this.#keepNewKey(i, lo, hi, cost, outcome)
    else this.#keep(i, lastDecided(engine, lo, hi, cost, limit, outcome))
    this.#at[i] = engine.reading.nowMs
  }

  #recordEra(from: number): void {
    const { era } = this.#engine
    if (this.#eras.at(-1)?.era !== era) this.#eras.push({ from, era })
  }

  /** Computes the figures of a key without a way at once, but only those that can be read later. */
  #keepNewKey(i: number, lo: number, hi: number, cost: number, outcome: Outcome): void {
    if (this.remaining === undefined && outcome !== Outcome.NO_ROOM) return
    const figures = this.#engine.estimates.ofNewKey(lo, hi, cost, this.#limits[i]!, outcome)
    if (this.remaining) this.remaining[i] = figures.remaining
    if (outcome !== Outcome.NO_ROOM) return
    this.#retryAfterMs ??= new Float64Array(this.length)
    this.#retryAfterMs[i] = figures.retryAfterMs
  }

  #keep(i: number, decided: Decided): void {
    if (this.remaining) this.remaining[i] = this.#engine.estimates.remaining(decided)
    if (decided.outcome !== Outcome.REFUSED) return
    this.#kept.set([decided.way, decided.adm, decided.tick, decided.until ?? 0], SEEN_WORDS * i)
  }

  #costOf(i: number): number {
    return typeof this.#costs === 'number' ? this.#costs : this.#costs[i]!
  }
}
