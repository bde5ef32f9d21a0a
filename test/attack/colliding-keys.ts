// The attack of someone who knows the seed: keys whose two sets are both among a few. The search uses the
// hash of src/memory/hash.ts. It hashes the first words once for many keys, and rejects a key as soon as its
// first set does not fit.
import { Hasher } from '#millrace/memory/hash.js'
import { HASH } from '#millrace/memory/layout.js'
import type { PrintLine } from '../long-runs/progress.js'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'
/** Four of the alphabet's 64 letters: the characters that the hash reads in one step. */
const QUADS = 64 ** 4
const LENGTH = 8

function quad(index: number): string {
  return [0, 6, 12, 18].map((bits) => ALPHABET[(index >>> bits) & 63]).join('')
}

/** All groups of four letters as words of the hash, the first character in the lowest byte. */
function quadWords(): Int32Array {
  const codes = [...ALPHABET].map((letter) => letter.charCodeAt(0))
  const words = new Int32Array(QUADS)
  for (let i = 0; i < QUADS; i++) {
    const [a, b, c, d] = [i & 63, (i >>> 6) & 63, (i >>> 12) & 63, i >>> 18]
    words[i] = codes[a]! | (codes[b]! << 8) | (codes[c]! << 16) | (codes[d]! << 24)
  }
  return words
}

/** The two sets of a fingerprint in a table of `sets`, as in src/memory/table.ts. */
export function setsOf(lo: number, hi: number, sets: number): [number, number] {
  const first = Math.floor((lo >>> 0) * sets * 2 ** -32)
  return [first, (first + 1 + Math.floor((hi >>> 0) * (sets - 1) * 2 ** -32)) % sets]
}

/** Finds `count` keys whose two sets are below `crowded` in a table of `sets`, under a seed. */
export function collidingKeys(
  [seed0, seed1]: readonly [number, number],
  sets: number,
  crowded: number,
  count: number,
  showProgress: PrintLine,
): string[] {
  const words = quadWords()
  const found: string[] = []
  for (let prefix = 0; found.length < count; prefix++) {
    const rest = count - found.length
    for (const suffix of search([seed0, seed1], words[prefix]!, words, sets, crowded, rest)) {
      found.push(quad(prefix) + quad(suffix))
    }
    showProgress(
      `collide: ${found.length} of ${count} keys found, ${((prefix + 1) * QUADS) / 1e6} million tried`,
    )
  }
  const hasher = new Hasher(seed0, seed1)
  for (const key of found) {
    hasher.hash(key)
    if (setsOf(hasher.lo, hasher.hi, sets).some((set) => set >= crowded)) {
      throw new Error(`the search and the limiter hash differently: ${key}`)
    }
  }
  return found
}

/** The indices of the second words that complete a first word to such a key. */
function search(
  [seed0, seed1]: readonly [number, number],
  first: number,
  seconds: Int32Array,
  sets: number,
  crowded: number,
  most: number,
): number[] {
  const found: number[] = []
  const last = LENGTH << 24
  for (let i = 0; i < seconds.length && found.length < most; i++) {
    let v0 = seed0
    let v1 = seed1 ^ 0xee
    let v2 = 0x6c796765 ^ seed0
    let v3 = 0x74656462 ^ seed1 ^ first
    const second = seconds[i]!
    let lo = 0
    for (let round = 0; round < 9; round++) {
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      if (round === 0) {
        v0 ^= first
        v3 ^= second
      } else if (round === 1) {
        v0 ^= second
        v3 ^= last
      } else if (round === 2) {
        v0 ^= last
        v2 ^= 0xee
      } else if (round === 5) {
        lo = v1 ^ v3 || 1
        if (Math.floor((lo >>> 0) * sets * 2 ** -32) >= crowded) break
        v1 ^= 0xdd
      } else if (round === 8 && setsOf(lo, (v1 ^ v3) & HASH, sets)[1] < crowded) found.push(i)
    }
  }
  return found
}
