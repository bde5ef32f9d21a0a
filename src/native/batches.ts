import type { Clock } from '../core/clock.js'
import type { Arena } from '../memory/records.js'
import { type Addon, addonForArena, type ChosenAddon } from './addon.js'
import { readsDefaultClock } from './default-clock.js'
import { type NativeParams, PARAM, paramsFor, SEEN_WORDS } from './native-params.js'

/**
 * TypeScript decides smaller batches, unless MILLRACE_NATIVE is 1. A call costs as much as three decisions,
 * and at four keys neither side is faster (AMD EPYC Zen 4, Node 20.20, 2026-11-21, `npm run bench -- --case
 * batch`).
 */
const LEAST_KEYS = 8

/**
 * V8 keeps small typed arrays on its heap and moves one out before the addon may see it, which costs as much
 * as four decisions. So the entries of batches up to this size are copied to and from arrays that were moved
 * before. A batch of 16 takes a third of the time (AMD EPYC Zen 4, Node 20.20, 2026-11-21, `npm run bench --
 * --case batch`).
 */
const MOST_COPIED = 256

/** The keys of a batch, and the arrays for the results. */
export interface Entries {
  readonly fingerprints: Int32Array
  readonly costs: number | Float64Array
  /** 1 for each admitted entry, 0 for each refused entry. */
  readonly allowed: Uint8Array
  /** The clock's reading of each decision, in milliseconds. */
  readonly at: Float64Array
  /**
   * `SEEN_WORDS` words for each refused entry: way or NO_WAY, and the way's admission word, tick and UNTIL.
   */
  readonly seen: Int32Array
  /** Units left after each decision, if the caller asked for them. */
  readonly remaining: Int32Array | undefined
}

/** The arrays that small batches are copied to and from: those of all limiters of this thread. */
let copy: (Entries & { readonly costs: Float64Array; readonly remaining: Int32Array }) | undefined

function copies(): NonNullable<typeof copy> {
  copy ??= {
    fingerprints: new Int32Array(2 * MOST_COPIED),
    costs: new Float64Array(MOST_COPIED),
    allowed: new Uint8Array(MOST_COPIED),
    at: new Float64Array(MOST_COPIED),
    seen: new Int32Array(SEEN_WORDS * MOST_COPIED),
    remaining: new Int32Array(MOST_COPIED),
  }
  return copy
}

/** Decides many keys of one arena in the addon. */
export class NativeBatches {
  /**
   * Whether the addon reads the clock for every `KEYS_PER_READING` keys. Otherwise the caller's reading holds
   * for all.
   */
  readonly readsClock: boolean
  /** The smallest batch that is worth a call. */
  readonly leastKeys: number
  readonly #addon: Addon
  readonly #words: Int32Array
  readonly #params: NativeParams

  /** Returns undefined if there is no addon. */
  static for(chosen: ChosenAddon, arena: Arena, clock: Clock): NativeBatches | undefined {
    const addon = addonForArena(chosen, arena)
    return addon && new NativeBatches(addon, arena, clock, chosen.handlesAll ? 1 : LEAST_KEYS)
  }

  constructor(addon: Addon, arena: Arena, clock: Clock, leastKeys: number) {
    this.#addon = addon
    this.#words = arena.words
    this.leastKeys = leastKeys
    this.readsClock = readsDefaultClock(addon, clock)
    this.#params = paramsFor(arena)
    this.#params[PARAM.READS_CLOCK] = this.readsClock ? 1 : 0
  }

  /** How many entries the last call of `admit` admitted. */
  get admitted(): number {
    return this.#params[PARAM.ADMITTED]!
  }

  /** How many of these have left their keys near the limit. */
  get near(): number {
    return this.#params[PARAM.NEAR]!
  }

  /** Admissions whose words come to `suspectFrom` are looked at: they are near with `nearFrom` units used. */
  countNear(suspectFrom: number, nearFrom: number): void {
    this.#params[PARAM.SUSPECT_FROM] = suspectFrom
    this.#params[PARAM.NEAR_FROM] = nearFrom
  }

  /**
   * Decides the entries from `from` to before `to`, in order. Returns the first entry that it did not decide,
   * or `to`. It stops at a key that needs a new cell or a newer reading of the clock. It also stops if the
   * limit has changed.
   */
  admit(entries: Entries, from: number, to: number, limit: number, nowMs: number): number {
    const params = this.#params
    params[PARAM.LIMIT] = limit
    params[PARAM.FROM] = from
    params[PARAM.TO] = to
    params[PARAM.NOW_MS] = nowMs
    if (entries.allowed.length > MOST_COPIED) return this.#decide(entries)
    params[PARAM.FROM] = 0
    params[PARAM.TO] = to - from
    const stopped = from + this.#decide(this.#copied(entries, from, to))
    const { allowed, at, seen, remaining } = copies()
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
    return this.#addon.admitMany(this.#words, fingerprints, costs, allowed, at, seen, this.#params, remaining)
  }

  #copied({ fingerprints, costs, remaining }: Entries, from: number, to: number): Entries {
    const copy = copies()
    for (let i = 2 * from; i < 2 * to; i++) copy.fingerprints[i - 2 * from] = fingerprints[i]!
    if (typeof costs === 'number') return { ...copy, costs, remaining: remaining && copy.remaining }
    for (let i = from; i < to; i++) copy.costs[i - from] = costs[i]!
    return { ...copy, remaining: remaining && copy.remaining }
  }
}
