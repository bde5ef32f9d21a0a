import { ADM, HI, LIVE, NAMES_AT, type Shape, STATE, WAYS_PER_SET } from './layout.js'
import { load, read, type Words } from './words.js'

/**
 * Where a key's way is. Every key has two sets of 16 ways to be in, taken from its fingerprint by multiply-shift (a
 * mask would round the table up to a power of two), and in each a home that is looked at first. Names are read plainly:
 * they are only a hint, and whoever acts on a way reads them again after its admission word.
 */
export class Table {
  readonly #words: Words
  readonly #sets: number
  readonly #waysAt: number
  readonly #wayWords: number

  constructor(words: Words, shape: Shape) {
    this.#words = words
    this.#sets = shape.sets
    this.#waysAt = shape.waysAt
    this.#wayWords = shape.wayWords
  }

  /** The index of a way's first word. */
  base(way: number): number {
    return this.#waysAt + way * this.#wayWords
  }

  /** The first way of the key's first set. */
  firstSet(lo: number): number {
    return Math.floor((lo >>> 0) * this.#sets * 2 ** -32) * WAYS_PER_SET
  }

  /** The first way of the key's second set, which is never the first one. */
  secondSet(firstSet: number, hi: number): number {
    const step = WAYS_PER_SET * (1 + Math.floor((hi >>> 0) * (this.#sets - 1) * 2 ** -32))
    const set = firstSet + step
    const end = this.#sets * WAYS_PER_SET
    return set < end ? set : set - end
  }

  /** Whether the way bears this name, by plain reads. */
  isNamed(way: number, lo: number, hi: number): boolean {
    return read(this.#words, NAMES_AT + way) === lo && read(this.#words, this.base(way) + HI) === hi
  }

  /** Where the key probably is, or -1: its home if that bears the low half of its name, else as `find`. */
  guess(lo: number, hi: number): number {
    const home = this.firstSet(lo) + (lo & (WAYS_PER_SET - 1))
    return read(this.#words, NAMES_AT + home) === lo ? home : this.find(lo, hi)
  }

  /** A way that bears the key's name, or -1. Its state has not been looked at. */
  find(lo: number, hi: number): number {
    const first = this.firstSet(lo)
    const way = this.#scan(first, lo, hi)
    return way >= 0 ? way : this.#scan(this.secondSet(first, hi), lo, hi)
  }

  /** Every way that the key may have. */
  *waysOf(lo: number, hi: number): Generator<number> {
    const first = this.firstSet(lo)
    for (const set of [first, this.secondSet(first, hi)]) {
      for (let way = set; way < set + WAYS_PER_SET; way++) yield way
    }
  }

  /** The way in which the key is LIVE, or -1: {@link find} may stop at a name left by a way's former life. */
  findLive(lo: number, hi: number): number {
    const found = this.find(lo, hi)
    if (found < 0 || this.isLive(found, lo, hi)) return found
    for (const way of this.waysOf(lo, hi)) {
      if (this.isNamed(way, lo, hi) && this.isLive(way, lo, hi)) return way
    }
    return -1
  }

  /** Whether the way is LIVE and the key's: the names read after the admission word, as every decision does. */
  isLive(way: number, lo: number, hi: number): boolean {
    const v = load(this.#words, this.base(way) + ADM)
    return (v & STATE) === LIVE && this.isNamed(way, lo, hi)
  }

  /** From the key's home on: where it was put, most keys are found at the first or second name. */
  #scan(set: number, lo: number, hi: number): number {
    const words = this.#words
    const names = NAMES_AT + set
    const home = lo & (WAYS_PER_SET - 1)
    for (let i = 0; i < WAYS_PER_SET; i++) {
      const place = (home + i) & (WAYS_PER_SET - 1)
      if (read(words, names + place) === lo && read(words, this.base(set + place) + HI) === hi)
        return set + place
    }
    return -1
  }
}
