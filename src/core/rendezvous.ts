/** FNV-1a, 32 bits, of the UTF-8 bytes. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}

/** The finalizer of MurmurHash3, 32 bits: each bit of the input changes each bit of the result half of the time. */
function mixed(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

interface Seeded<T> {
  readonly seed: number
  readonly name: string
  readonly of: T
}

/**
 * Rendezvous hashing (Thaler and Ravishankar, 1998): each name has a score for a tag, and the highest one wins. So a
 * name that joins takes its share of the tags from all others, and no other tag moves.
 *
 *   score = mixed(mixed(fnv1a(name)) ^ fnv1a(tag))
 *
 * with unsigned 32-bit numbers. Of equal scores, the name that is less by UTF-16 code units wins.
 */
export class Rendezvous<T> {
  readonly #all: readonly Seeded<T>[]

  /** @param all at least one, of different names */
  constructor(all: readonly (readonly [name: string, of: T])[]) {
    this.#all = all
      .map(([name, of]) => ({ seed: mixed(fnv1a(name)), name, of }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  find(tag: string): T {
    const hash = fnv1a(tag)
    let best = this.#all[0]!
    let most = -1
    for (const each of this.#all) {
      const score = mixed(each.seed ^ hash)
      if (score <= most) continue
      most = score
      best = each
    }
    return best.of
  }

  /** Those with the highest scores, the highest one first: what `find` returns, and then what it would return without. */
  ranked(tag: string, count: number): T[] {
    const hash = fnv1a(tag)
    return this.#all // by name, and `sort` is stable
      .map(({ seed, of }) => ({ score: mixed(seed ^ hash), of }))
      .sort((a, b) => b.score - a.score)
      .slice(0, count)
      .map(({ of }) => of)
  }
}
