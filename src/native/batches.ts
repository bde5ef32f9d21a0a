import { type Clock, monotonicClock } from '../core/clock.js'
import type { Arena } from '../memory/arena.js'
import { type Addon, addonFor } from './addon.js'
import { isTaken, PLAN, planFor } from './plan.js'

/**
 * Smaller batches are decided in TypeScript, unless MILLRACE_NATIVE is 1: a call costs as much as three decisions, and at
 * four keys neither side wins (AMD EPYC Zen 4, Node 20.20, 2026-11-21, `npm run bench -- --case batch`).
 */
const LEAST_KEYS = 8

/**
 * Typed arrays of few elements lie on V8's heap. To show one to the addon V8 moves it out first, which costs as much as four
 * decisions: so the entries of batches up to this are copied to arrays that are out already, and their answers back. A
 * batch of 16 takes a third of the time so (AMD EPYC Zen 4, Node 20.20, 2026-11-21, `npm run bench -- --case batch`).
 */
const MOST_COPIED = 256

/** @see Entries.seen */
export const SEEN_WORDS = 4

/** Keys, and where their answers go. */
export interface Entries {
  readonly fingerprints: Int32Array
  readonly costs: number | Float64Array
  readonly allowed: Uint8Array
  /** The reading by which each was decided. */
  readonly at: Float64Array
  /** Of each that was refused, SEEN_WORDS words: its way or -1, and the way's admission word, tick and UNTIL then. */
  readonly seen: Int32Array
  /** What was left after each, where it was asked for. */
  readonly remaining: Int32Array | undefined
}

/** Decides many keys of one arena in the addon. */
export class NativeBatches {
  /** Whether it reads the clock by itself at every 64th key; else it decides all by the reading that it is given. */
  readonly readsClock: boolean
  /** The smallest batch to be decided here. */
  readonly leastKeys: number
  readonly #addon: Addon
  readonly #words: Int32Array
  readonly #plan: Float64Array
  readonly #copy = {
    fingerprints: new Int32Array(2 * MOST_COPIED),
    costs: new Float64Array(MOST_COPIED),
    allowed: new Uint8Array(MOST_COPIED),
    at: new Float64Array(MOST_COPIED),
    seen: new Int32Array(SEEN_WORDS * MOST_COPIED),
    remaining: new Int32Array(MOST_COPIED),
  }

  /** Undefined where there is no addon. */
  static for(arena: Arena, clock: Clock): NativeBatches | undefined {
    const addon = addonFor()
    return addon === undefined || !isTaken(arena) ? undefined : new NativeBatches(addon, arena, clock)
  }

  constructor(addon: Addon, arena: Arena, clock: Clock) {
    this.#addon = addon
    this.#words = arena.words
    this.leastKeys = process.env.MILLRACE_NATIVE === '1' ? 1 : LEAST_KEYS
    this.readsClock = addon.readsClock && clock === monotonicClock
    this.#plan = planFor(arena)
    this.#plan[PLAN.READS_CLOCK_ITSELF] = this.readsClock ? 1 : 0
  }

  /** How many of those decided last were admitted. */
  get admitted(): number {
    return this.#plan[PLAN.ADMITTED]!
  }

  /**
   * Decides the entries from `from` to `to`, in order. Returns the first that it has not decided: one whose key needs a
   * cell of its own, or a newer reading of the clock; one before which the limit was changed; or `to`.
   */
  admit(entries: Entries, from: number, to: number, limit: number, nowMs: number): number {
    const plan = this.#plan
    plan[PLAN.LIMIT] = limit
    plan[PLAN.FROM] = from
    plan[PLAN.TO] = to
    plan[PLAN.NOW_MS] = nowMs
    if (entries.allowed.length > MOST_COPIED) return this.#decide(entries)
    plan[PLAN.FROM] = 0
    plan[PLAN.TO] = to - from
    const stopped = from + this.#decide(this.#copied(entries, from, to))
    const { allowed, at, seen, remaining } = this.#copy
    for (let i = from; i < stopped; i++) {
      entries.allowed[i] = allowed[i - from]!
      if (allowed[i - from] === 0) {
        for (let k = 0; k < SEEN_WORDS; k++)
          entries.seen[SEEN_WORDS * i + k] = seen[SEEN_WORDS * (i - from) + k]!
      }
      entries.at[i] = at[i - from]!
      if (entries.remaining) entries.remaining[i] = remaining[i - from]!
    }
    return stopped
  }

  #decide({ fingerprints, costs, allowed, at, seen, remaining }: Entries): number {
    return this.#addon.admitMany(this.#words, fingerprints, costs, allowed, at, seen, this.#plan, remaining)
  }

  #copied({ fingerprints, costs, remaining }: Entries, from: number, to: number): Entries {
    const copy = this.#copy
    for (let i = 2 * from; i < 2 * to; i++) copy.fingerprints[i - 2 * from] = fingerprints[i]!
    if (typeof costs === 'number') return { ...copy, costs, remaining: remaining && copy.remaining }
    for (let i = from; i < to; i++) copy.costs[i - from] = costs[i]!
    return { ...copy, remaining: remaining && copy.remaining }
  }
}
