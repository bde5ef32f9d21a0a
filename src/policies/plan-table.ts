import { HASH } from '../memory/layout.js'
import { UNKNOWN } from './plan.js'

/** A set is one cache line: the words of five entries, side by side, and one to spare. */
const SET_BITS = 4
const SET_WORDS = 2 ** SET_BITS
const WAYS = 5
/** The lower halves of fingerprints come first. These are the distances to the other words of an entry. */
const HI = WAYS
const PLAN = 2 * WAYS
/** The upper half has the epoch in the bits that a fingerprint leaves free. Without one, an entry is empty. */
const EPOCH = ~HASH
const OUTDATED = 1
const FIRST_EPOCH = 2
/** The upper two bits of a lower half say which entry of its set is a key's home: one of the first four. */
const HOME_SHIFT = 30
const MOST_SETS = 2 ** 18

/**
 * Which plan a key has, by its fingerprint: the front of the cache of policies. A key's string is hashed for its
 * decision anyway, so a look-up here reads one cache line, and takes no second hash of the string. A set that is full
 * has the rest of its keys in the set beside it. Each thread has a table of its own.
 *
 * Entries of an earlier epoch count no more: their plans may be out of date. They still know the entry of the cache
 * that the plan came from, so a plan that still holds is found again without the string.
 */
export class PlanTable<Source extends object> {
  readonly #words: Int32Array
  readonly #sources: (Source | undefined)[]
  readonly #mask: number
  #epoch = FIRST_EPOCH
  /** The entry that was found outdated last: most likely it is asked for, and set, next. */
  #outdated = 0

  /** Room for about twice `maxKeys` keys, at most a million. */
  constructor(maxKeys: number) {
    let sets = 2
    while (sets < MOST_SETS && sets * WAYS < 2 * maxKeys) sets *= 2
    this.#mask = sets - 1
    this.#words = new Int32Array(sets * SET_WORDS)
    this.#sources = new Array<Source | undefined>(sets * WAYS).fill(undefined)
  }

  /** The plan of a key, or UNKNOWN. */
  find(lo: number, hi: number): number {
    const words = this.#words
    const at = this.#homeOf(lo)
    if (words[at] === lo && words[at + HI] === (hi | this.#epoch)) return words[at + PLAN]!
    return this.#findElsewhere(lo, hi)
  }

  #findElsewhere(lo: number, hi: number): number {
    const at = this.#entryOf(lo, hi)
    if (at < 0) return UNKNOWN
    if (this.#words[at + HI] === (hi | this.#epoch)) return this.#words[at + PLAN]!
    this.#outdated = at
    return UNKNOWN
  }

  /** Where the plan of a key came from that `find` has just found outdated; undefined: that is not known. */
  sourceOf(lo: number, hi: number): Source | undefined {
    const at = this.#outdated
    return this.#isAt(at, lo, hi) ? this.#sources[sourceAt(at)] : undefined
  }

  /** @param source what the plan came from; undefined: it is looked up each time */
  set(lo: number, hi: number, plan: number, source: Source | undefined): void {
    const at = this.#isAt(this.#outdated, lo, hi) ? this.#outdated : this.#placeFor(lo, hi)
    const words = this.#words
    words[at] = lo
    words[at + HI] = hi | this.#epoch
    words[at + PLAN] = plan
    const i = sourceAt(at)
    if (this.#sources[i] !== source) this.#sources[i] = source
  }

  remove(lo: number, hi: number): void {
    const at = this.#entryOf(lo, hi)
    if (at < 0) return
    this.#words[at + HI] = 0
    this.#sources[sourceAt(at)] = undefined
  }

  /** Forgets where the plan of a key came from. The plan holds until all are forgotten. */
  unlink(lo: number, hi: number): void {
    const at = this.#entryOf(lo, hi)
    if (at >= 0) this.#sources[sourceAt(at)] = undefined
  }

  /** Forgets the plans of all keys, but not where they came from. */
  clear(): void {
    if (this.#epoch < EPOCH) this.#epoch++
    else {
      this.#outdateAll()
      this.#epoch = FIRST_EPOCH
    }
  }

  /** Forgets everything. */
  close(): void {
    this.#words.fill(0)
    this.#sources.fill(undefined)
  }

  /** Gives all entries the epoch that is never the present one: numbers of epochs are used again. */
  #outdateAll(): void {
    const words = this.#words
    for (let from = 0; from < words.length; from += SET_WORDS) {
      for (let at = from + HI; at < from + HI + WAYS; at++)
        if ((words[at]! & EPOCH) !== 0) words[at] = (words[at]! & HASH) | OUTDATED
    }
  }

  /** Where most keys are: a look-up tries it first, because the processor can then predict how it ends. */
  #homeOf(lo: number): number {
    return ((lo & this.#mask) << SET_BITS) + (lo >>> HOME_SHIFT)
  }

  /** The entry of a key, whether or not it is outdated; -1 if there is none. */
  #entryOf(lo: number, hi: number): number {
    const from = (lo & this.#mask) << SET_BITS
    for (let at = from; at < from + WAYS; at++) if (this.#isAt(at, lo, hi)) return at
    const beside = from ^ SET_WORDS
    for (let at = beside; at < beside + WAYS; at++) if (this.#isAt(at, lo, hi)) return at
    return -1
  }

  /** Its own entry; else an empty one, its home if possible; else an outdated one; else its home. */
  #placeFor(lo: number, hi: number): number {
    const own = this.#entryOf(lo, hi)
    if (own >= 0) return own
    const words = this.#words
    const home = this.#homeOf(lo)
    if (words[home + HI] === 0) return home
    const from = (lo & this.#mask) << SET_BITS
    let outdated = -1
    for (const set of [from, from ^ SET_WORDS]) {
      for (let at = set; at < set + WAYS; at++) {
        const epoch = words[at + HI]! & EPOCH
        if (epoch === 0) return at
        if (outdated < 0 && epoch !== this.#epoch) outdated = at
      }
    }
    return outdated >= 0 ? outdated : home
  }

  #isAt(at: number, lo: number, hi: number): boolean {
    const own = this.#words[at + HI]!
    return this.#words[at] === lo && (own & HASH) === hi && own !== hi
  }
}

/** The index of an entry among the sources, which have nothing to spare. */
const sourceAt = (at: number): number => (at >> SET_BITS) * WAYS + (at & (SET_WORDS - 1))
