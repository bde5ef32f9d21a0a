import * as fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Hasher } from '#millrace/memory/hash.js'

/** HalfSipHash-c-d with 64 bits of output as its authors define it, byte by byte, in 64-bit-free arithmetic. */
function halfSipHash(c: number, d: number, k0: number, k1: number, message: Uint8Array): [number, number] {
  const rotate = (x: number, n: number) => (x << n) | (x >>> (32 - n))
  let [v0, v1, v2, v3] = [k0, k1 ^ 0xee, 0x6c796765 ^ k0, 0x74656462 ^ k1]
  const rounds = (n: number) => {
    for (let i = 0; i < n; i++) {
      v0 = (v0 + v1) | 0
      v1 = rotate(v1, 5) ^ v0
      v0 = rotate(v0, 16)
      v2 = (v2 + v3) | 0
      v3 = rotate(v3, 8) ^ v2
      v0 = (v0 + v3) | 0
      v3 = rotate(v3, 7) ^ v0
      v2 = (v2 + v1) | 0
      v1 = rotate(v1, 13) ^ v2
      v2 = rotate(v2, 16)
    }
  }
  const padded = new Uint8Array(4 * (Math.floor(message.length / 4) + 1))
  padded.set(message)
  padded[padded.length - 1] = message.length & 255
  for (const word of new Int32Array(padded.buffer)) {
    v3 ^= word
    rounds(c)
    v0 ^= word
  }
  v2 ^= 0xee
  rounds(d)
  const lo = v1 ^ v3
  v1 ^= 0xdd
  rounds(d)
  return [lo, v1 ^ v3]
}

const hex = (words: number[]) => Buffer.from(new Int32Array(words).buffer).toString('hex')

test('the reference in this test gives the published vectors of HalfSipHash-2-4', () => {
  // Key 00 01 .. 07, messages of 0, 1 and 2 bytes 00 01 ..: vectors_hsip64 of the authors' vectors.h.
  const [k0, k1] = [0x03020100, 0x07060504]
  const message = Uint8Array.from({ length: 64 }, (_, i) => i)
  const vectors = ['218d1f59b9b83cc8', 'be552412f8387315', '064f39ef7c50eb57']
  vectors.forEach((vector, length) => {
    assert.is(hex(halfSipHash(2, 4, k0, k1, message.subarray(0, length))), vector)
  })
})

const key = fc.string({
  minLength: 1,
  maxLength: 70,
  unit: fc.integer({ min: 0, max: 255 }).map((c) => String.fromCharCode(c)),
})
const seed = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })

test('a key of characters below 256 is hashed as its bytes by HalfSipHash-1-3', () => {
  fc.assert(
    fc.property(seed, seed, key, (k0, k1, key) => {
      const hasher = new Hasher(k0, k1)
      hasher.hash(key)
      const [lo, hi] = halfSipHash(1, 3, k0, k1, Buffer.from(key, 'latin1'))
      assert.equal([hasher.lo, hasher.hi], [lo || 1, hi])
    }),
  )
})

test('a key with any other character is hashed as UTF-16 under another seed', () => {
  fc.assert(
    fc.property(seed, seed, key, key, (k0, k1, before, after) => {
      const key = `${before}\u20ac${after}`
      const hasher = new Hasher(k0, k1)
      hasher.hash(key)
      const [lo, hi] = halfSipHash(1, 3, k0 ^ 0x77696465, k1, Buffer.from(key, 'utf16le'))
      assert.equal([hasher.lo, hasher.hi], [lo || 1, hi])
    }),
  )
})

test('a million similar keys have a million fingerprints, under any seed', () => {
  for (const seed of [0, 1, -1, 0x12345678]) {
    const hasher = new Hasher(seed, ~seed)
    const seen = new Set<number>()
    for (let i = 0; i < 1_000_000; i++) {
      hasher.hash(`user:${i}`)
      seen.add((hasher.hi >>> 0) * 2 ** 20 + (hasher.lo >>> 12)) // 52 of the 64 bits
    }
    assert.is(seen.size, 1_000_000)
  }
})

test('a fingerprint never has the name of a way that was never used', () => {
  const hasher = new Hasher(5, 7)
  for (let i = 0; i < 100_000; i++) {
    hasher.hash(String(i))
    assert.is.not(hasher.lo, 0)
  }
})

test.run()
