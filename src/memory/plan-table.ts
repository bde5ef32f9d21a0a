/** A set is one cache line of four entries, each of four words. */
const WORDS = 4
const WAYS = 4
const LO = 0
const HI = 1
const PLAN = 2
const EPOCH = 3
const MOST_SETS = 2 ** 18

/**
 * Which plan a key has, by its fingerprint: the front of the cache of policies. A key's string is hashed for its
 * decision anyway, so a look-up here reads one cache line, and takes no second hash of the string. Each thread has a
 * table of its own. Entries of an earlier epoch count no more: their keys are looked up in the cache again.
 */
export class PlanTable {
  readonly #words: Int32Array
  readonly #mask: number
  #epoch = 1
  #next = 0
  /** The entry of an earlier epoch that was found last: most likely it is set next. */
  #outdated = 0

  /** Room for about twice `maxKeys` keys, at most a million. */
  constructor(maxKeys: number) {
    let sets = 1
    while (sets < MOST_SETS && sets * WAYS < 2 * maxKeys) sets *= 2
    this.#mask = sets - 1
    this.#words = new Int32Array(sets * WAYS * WORDS)
  }

  /** The plan of a key, or -1. */
  find(lo: number, hi: number): number {
    const words = this.#words
    const from = (lo & this.#mask) * (WAYS * WORDS)
    for (let at = from; at < from + WAYS * WORDS; at += WORDS) {
      if (words[at + LO] !== lo || words[at + HI] !== hi) continue
      if (words[at + EPOCH] === this.#epoch) return words[at + PLAN]!
      this.#outdated = at
      return -1
    }
    return -1
  }

  set(lo: number, hi: number, plan: number): void {
    const words = this.#words
    const known = this.#outdated
    if (words[known + LO] === lo && words[known + HI] === hi) {
      words[known + PLAN] = plan
      words[known + EPOCH] = this.#epoch
      return
    }
    const from = (lo & this.#mask) * (WAYS * WORDS)
    let to = -1
    for (let at = from; at < from + WAYS * WORDS; at += WORDS) {
      if (words[at + LO] === lo && words[at + HI] === hi) {
        to = at
        break
      }
      if (words[at + EPOCH] !== this.#epoch) to = at
    }
    if (to < 0) {
      this.#next = (this.#next + 1) % WAYS
      to = from + this.#next * WORDS
    }
    words[to + LO] = lo
    words[to + HI] = hi
    words[to + PLAN] = plan
    words[to + EPOCH] = this.#epoch
  }

  remove(lo: number, hi: number): void {
    const words = this.#words
    const from = (lo & this.#mask) * (WAYS * WORDS)
    for (let at = from; at < from + WAYS * WORDS; at += WORDS) {
      if (words[at + LO] === lo && words[at + HI] === hi) words[at + EPOCH] = 0
    }
  }

  /** Forgets all keys. */
  clear(): void {
    this.#epoch = this.#epoch === 2 ** 31 - 1 ? 1 : this.#epoch + 1
    if (this.#epoch === 1) this.#words.fill(0)
  }
}
