// run: also-full, also-long

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Hasher } from '#millrace/memory/hash.js'
import fc from '../fast-check.js'
import { sized } from '../size.js'
import { fingerprint, halfSipHash } from './half-sip-hash.js'

/** A million similar keys under each. */
const SEEDS = sized({ quick: [0x12345678], full: [0, 1, -1, 0x12345678] })

const hex = (words: number[]) => Buffer.from(new Int32Array(words).buffer).toString('hex')

test('the reference implementation gives the published vectors of HalfSipHash-2-4', () => {
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

test('a key of characters below 256 is hashed byte by byte by HalfSipHash-1-3', () => {
  fc.assert(
    fc.property(seed, seed, key, (k0, k1, key) => {
      const hasher = new Hasher(k0, k1)
      hasher.hash(key)
      assert.equal([hasher.lo, hasher.hi], fingerprint(k0, k1, key))
    }),
  )
})

test('a key with any other character is hashed as UTF-16 by another seed', () => {
  fc.assert(
    fc.property(seed, seed, key, key, (k0, k1, before, after) => {
      const key = `${before}\u20ac${after}`
      const hasher = new Hasher(k0, k1)
      hasher.hash(key)
      assert.equal([hasher.lo, hasher.hi], fingerprint(k0, k1, key))
    }),
  )
})

test('a million similar keys have a million fingerprints, under each seed', () => {
  for (const seed of SEEDS) {
    const hasher = new Hasher(seed, ~seed)
    const seen = new Set<number>()
    for (let i = 0; i < 1_000_000; i++) {
      hasher.hash(`user:${i}`)
      seen.add((hasher.hi >>> 7) * 2 ** 28 + (hasher.lo >>> 4)) // 53 of the 57 bits
    }
    assert.is(seen.size, 1_000_000)
  }
})

test('a key of only U+0100, the first character above a byte, is hashed as UTF-16', () => {
  const hasher = new Hasher(3, 4)
  hasher.hash('\u0100')
  assert.equal([hasher.lo, hasher.hi], fingerprint(3, 4, '\u0100'))
})

test('a half of a fingerprint that is 0 becomes 1, so no key has the name of an unused way', () => {
  const key = 'mkfhmjffa' // found by a search of billions of keys
  const [lo] = halfSipHash(1, 3, 0, 0, Buffer.from(key))
  assert.is(lo, 0)
  const hasher = new Hasher(0, 0)
  hasher.hash(key)
  assert.equal([hasher.lo, hasher.hi], fingerprint(0, 0, key))
  assert.is(hasher.lo, 1)
})

test.run()
