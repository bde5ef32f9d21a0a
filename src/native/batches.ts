import { type Clock, monotonicClock } from '../core/clock.js'
import type { Arena } from '../memory/arena.js'
import { type Addon, addonFor } from './addon.js'

/** Smaller batches are decided in TypeScript, unless MILLRACE_NATIVE is 1: what a call costs is more than it saves. */
const LEAST_KEYS = 16

/** The numbers that a batch is decided by, where `native/addon.cc` looks for them. */
const PLAN = {
  WINDOW_MS: 0,
  ORIGIN_MS: 1,
  BUCKETS: 2,
  SETS: 3,
  IS_SMOOTH: 4,
  LIMIT: 5,
  FROM: 6,
  TO: 7,
  NOW_MS: 8,
  READS_CLOCK: 9,
  /** Written by the addon. */
  ADMITTED: 10,
} as const
const PLAN_FIELDS = 11

/** Keys, and where their answers go. */
export interface Entries {
  readonly fingerprints: Int32Array
  readonly costs: number | Float64Array
  readonly allowed: Uint8Array
  /** The reading by which each was decided. */
  readonly at: Float64Array
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
  readonly #plan = new Float64Array(PLAN_FIELDS)

  /** Undefined where there is no addon, or it does not decide on cells of this shape. */
  static for(arena: Arena, clock: Clock): NativeBatches | undefined {
    const addon = addonFor()
    if (addon === undefined || arena.shape.buckets > addon.mostBuckets) return undefined
    return new NativeBatches(addon, arena, clock)
  }

  constructor(addon: Addon, { words, shape, originMs, edge }: Arena, clock: Clock) {
    this.#addon = addon
    this.#words = words
    this.leastKeys = process.env.MILLRACE_NATIVE === '1' ? 1 : LEAST_KEYS
    this.readsClock = addon.readsClock && clock === monotonicClock
    this.#plan[PLAN.WINDOW_MS] = shape.windowMs
    this.#plan[PLAN.ORIGIN_MS] = originMs
    this.#plan[PLAN.BUCKETS] = shape.buckets
    this.#plan[PLAN.SETS] = shape.sets
    this.#plan[PLAN.IS_SMOOTH] = edge === 'smooth' ? 1 : 0
    this.#plan[PLAN.READS_CLOCK] = this.readsClock ? 1 : 0
  }

  /** How many of those decided last were admitted. */
  get admitted(): number {
    return this.#plan[PLAN.ADMITTED]!
  }

  /**
   * Decides the entries from `from` to `to`, in order. Returns the first that it has not decided: one whose key needs a
   * cell of its own, or a newer reading of the clock; or `to`.
   */
  admit(entries: Entries, from: number, to: number, limit: number, nowMs: number): number {
    const plan = this.#plan
    plan[PLAN.LIMIT] = limit
    plan[PLAN.FROM] = from
    plan[PLAN.TO] = to
    plan[PLAN.NOW_MS] = nowMs
    const { fingerprints, costs, allowed, at, remaining } = entries
    return this.#addon.admitMany(this.#words, fingerprints, costs, allowed, at, plan, remaining)
  }
}
