import { ADM, HASH, HI, LIVE, NAMES_AT, type Shape, STATE, WAYS_PER_SET } from './layout.js'
import { load, read, type Words } from './words.js'

/**
 * Finds a key's way. A key has two sets, chosen from its fingerprint by multiply-shift. (A mask would round
 * the table up to a power of two.) It finds the cells of one record. In each set it has a *home*, the way at which a lookup starts. Names are
 * read plainly. They are only a hint: the caller reads them again after the way's admission word.
 */
export class Table {
  readonly #words: Words
  readonly #sets: number
  readonly #waysAt: number
  readonly #wayWords: number
  readonly #record: number

  constructor(words: Words, shape: Shape) {
    this.#words = words
    this.#sets = shape.sets
    this.#waysAt = shape.waysAt
    this.#wayWords = shape.wayWords
    this.#record = shape.record
  }

  /** The index of a way's first word. */
  base(way: number): number {
    return this.#waysAt + way * this.#wayWords
  }

  /** The first way of the key's first set. */
  firstSet(lo: number): number {
    return Math.floor((lo >>> 0) * this.#sets * 2 ** -32) * WAYS_PER_SET
  }

  /** The first way of the key's second set, which is never its first set. */
  secondSet(firstSet: number, hi: number): number {
    const step = WAYS_PER_SET * (1 + Math.floor((hi >>> 0) * (this.#sets - 1) * 2 ** -32))
    const set = firstSet + step
    const end = this.#sets * WAYS_PER_SET
    return set < end ? set : set - end
  }

  /** Whether the way has this name and this record, by plain reads. */
  isNamed(way: number, lo: number, hi: number): boolean {
    const words = this.#words
    return read(words, NAMES_AT + way) === lo && read(words, this.base(way) + HI) === (hi | this.#record)
  }

  /** Whether the way has this name, by plain reads, with any record. */
  isOfKey(way: number, lo: number, hi: number): boolean {
    const words = this.#words
    return read(words, NAMES_AT + way) === lo && ((read(words, this.base(way) + HI) ^ hi) & HASH) === 0
  }

  /** The way in the key's first set at which a lookup starts. */
  home(lo: number): number {
    return this.firstSet(lo) + (lo & (WAYS_PER_SET - 1))
  }

  /** The key's home if that has the low half of its name; otherwise as {@link find}. */
  guess(lo: number, hi: number): number {
    const home = this.home(lo)
    return read(this.#words, NAMES_AT + home) === lo ? home : this.find(lo, hi)
  }

  /** A way with the key's name, in any state, or -1. */
  find(lo: number, hi: number): number {
    const first = this.firstSet(lo)
    const way = this.#scan(first, lo, hi)
    return way >= 0 ? way : this.#scan(this.secondSet(first, hi), lo, hi)
  }

  /** The ways of both sets of a key. */
  *waysOf(lo: number, hi: number): Generator<number> {
    const first = this.firstSet(lo)
    for (const set of [first, this.secondSet(first, hi)]) {
      for (let way = set; way < set + WAYS_PER_SET; way++) yield way
    }
  }

  /** The way in which the key is LIVE, or -1. {@link find} may return a way whose name is out of date. */
  findLive(lo: number, hi: number): number {
    const found = this.find(lo, hi)
    if (found < 0 || this.isLive(found, lo, hi)) return found
    for (const way of this.waysOf(lo, hi)) {
      if (this.isNamed(way, lo, hi) && this.isLive(way, lo, hi)) return way
    }
    return -1
  }

  /** Whether the way is LIVE and has this name, which is read after the admission word. */
  isLive(way: number, lo: number, hi: number): boolean {
    const v = load(this.#words, this.base(way) + ADM)
    return (v & STATE) === LIVE && this.isNamed(way, lo, hi)
  }

  /** Starts at the key's home: most keys are found at the first or second name. */
  #scan(set: number, lo: number, hi: number): number {
    const words = this.#words
    const names = NAMES_AT + set
    const named = hi | this.#record
    const home = lo & (WAYS_PER_SET - 1)
    for (let i = 0; i < WAYS_PER_SET; i++) {
      const place = (home + i) & (WAYS_PER_SET - 1)
      if (read(words, names + place) === lo && read(words, this.base(set + place) + HI) === named)
        return set + place
    }
    return -1
  }
}
