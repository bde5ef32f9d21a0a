import { HASH } from './layout.js'

/**
 * Computes fingerprints: HalfSipHash-1-3 with 64 bits of output (J.-P. Aumasson and D. J. Bernstein's SipHash
 * in 32-bit arithmetic, https://github.com/veorq/SipHash), of which 57 are used. The arena's random seed is
 * its key, so a client that does not know the seed can't choose keys that collide. Multiplicative hashes
 * (Murmur, FNV, xxHash) have collisions that hold for every seed.
 *
 * The message is the key's characters as bytes, four for each step, if all are below 256 (addresses, ids,
 * paths). Any other key is hashed as UTF-16LE with another seed, so no two keys have the same message.
 * Reading the characters is two thirds of the cost (`npm run bench -- --case hash`).
 */
export class Hasher {
  /**
   * The halves of the last fingerprint. `lo` is never 0, because the name 0 means a way that was never used.
   */
  lo = 0
  hi = 0
  readonly #seed0: number
  readonly #seed1: number

  constructor(seed0: number, seed1: number) {
    this.#seed0 = seed0
    this.#seed1 = seed1
  }

  /** Stores the key's fingerprint in `lo` and `hi`. */
  hash(key: string): void {
    const length = key.length
    const whole = length & ~3
    let v0 = this.#seed0
    let v1 = this.#seed1 ^ 0xee
    let v2 = 0x6c796765 ^ this.#seed0
    let v3 = 0x74656462 ^ this.#seed1
    let wide = 0
    let word = 0
    for (let i = 0; i < whole; i += 4) {
      const a = key.charCodeAt(i)
      const b = key.charCodeAt(i + 1)
      const c = key.charCodeAt(i + 2)
      const d = key.charCodeAt(i + 3)
      wide |= a | b | c | d
      word = a | (b << 8) | (c << 16) | (d << 24)
      v3 ^= word
      v0 = ((v0 | 0) + (v1 | 0)) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = ((v2 | 0) + (v3 | 0)) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = ((v0 | 0) + (v3 | 0)) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = ((v2 | 0) + (v1 | 0)) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    word = length << 24
    for (let i = whole; i < length; i++) {
      const c = key.charCodeAt(i)
      wide |= c
      word |= c << (8 * (i - whole))
    }
    if (wide > 255) this.#hashWide(key)
    else this.#finish(v0, v1, v2, v3, word)
  }

  #hashWide(key: string): void {
    let v0 = this.#seed0 ^ 0x77696465
    let v1 = this.#seed1 ^ 0xee
    let v2 = 0x6c796765 ^ v0
    let v3 = 0x74656462 ^ this.#seed1
    const length = key.length
    for (let i = 0; i + 2 <= length; i += 2) {
      const word = key.charCodeAt(i) | (key.charCodeAt(i + 1) << 16)
      v3 ^= word
      v0 = ((v0 | 0) + (v1 | 0)) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = ((v2 | 0) + (v3 | 0)) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = ((v0 | 0) + (v3 | 0)) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = ((v2 | 0) + (v1 | 0)) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    const last = length & 1 ? key.charCodeAt(length - 1) : 0
    this.#finish(v0, v1, v2, v3, ((2 * length) << 24) | last)
  }

  /** Hashes the last word, then does three rounds for each half of the output. */
  #finish(a: number, b: number, c: number, d: number, word: number): void {
    let v0 = a
    let v1 = b
    let v2 = c
    let v3 = d ^ word
    for (let round = 0; round < 7; round++) {
      v0 = ((v0 | 0) + (v1 | 0)) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = ((v2 | 0) + (v3 | 0)) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = ((v0 | 0) + (v3 | 0)) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = ((v2 | 0) + (v1 | 0)) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      if (round === 0) {
        v0 ^= word
        v2 ^= 0xee
      } else if (round === 3) {
        this.lo = v1 ^ v3 || 1
        v1 ^= 0xdd
      }
    }
    this.hi = (v1 ^ v3) & HASH
  }
}
