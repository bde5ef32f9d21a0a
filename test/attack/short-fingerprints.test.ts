// run: typescript
// The effect of a collision of two fingerprints, on a build with 8-bit fingerprints, and the
// odds with 64 bits.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'
import { ExactLog } from '../judge/exact-log.js'
import { type ShortBuild, withShortFingerprints } from './short-fingerprints.js'

const LIMIT = 5
const WINDOW_MS = 60_000
const GRANULE_MS = 1_000

/** A limiter with room for every fingerprint, and a function for the fingerprint of a key. */
function limiterOf({ millrace, Hasher }: ShortBuild) {
  const clock = millrace.manualClock(1e9)
  const options = { limit: LIMIT, window: WINDOW_MS, granularity: GRANULE_MS, maxKeys: 2_000, clock }
  const limiter = millrace.createLimiter(options)
  const words = new Int32Array(limiter.share().buffer)
  const hasher = new Hasher(words[HEADER.SEED_0]!, words[HEADER.SEED_1]!)
  const fingerprintOf = (key: string) => {
    hasher.hash(key)
    return hasher.lo
  }
  return { clock, limiter, fingerprintOf }
}

test('two keys with one fingerprint share a cell and a limit', () =>
  withShortFingerprints((build) => {
    const { limiter, fingerprintOf } = limiterOf(build)
    const first = fingerprintOf('alice')
    let other = 'bob 0'
    for (let i = 1; fingerprintOf(other) !== first; i++) other = `bob ${i}`
    for (let i = 0; i < 3; i++) assert.ok(limiter.check('alice').allowed)
    assert.is(limiter.usage(other), 3)
    assert.equal([limiter.check(other).remaining, limiter.check(other).remaining], [1, 0])
    assert.equal([limiter.check(other).allowed, limiter.check('alice').allowed], [false, false])
    assert.is(limiter.stats().keys, 1)
  }))

test('a collision can only refuse: all keys of one fingerprint together stay within one limit', () =>
  withShortFingerprints((build) => {
    const { clock, limiter, fingerprintOf } = limiterOf(build)
    const next = random(8)
    const logs = new Map<number, ExactLog>()
    const own = new Map<string, ExactLog>()
    const logOf = <Name>(of: Map<Name, ExactLog>, name: Name) =>
      of.get(name) ?? of.set(name, new ExactLog()).get(name)!
    let shared = 0
    for (let i = 0; i < 60_000; i++) {
      if (next() < 0.05) clock.advance(Math.floor(next() * 400))
      const key = `key ${Math.floor(next() * 1_000)}`
      const now = clock.now()
      const log = logOf(logs, fingerprintOf(key))
      if (limiter.check(key).allowed) {
        log.add(now, 1)
        logOf(own, key).add(now, 1)
        assert.ok(log.used(now, WINDOW_MS) <= LIMIT, `${key} and those of its fingerprint are over`)
        continue
      }
      assert.ok(log.used(now, WINDOW_MS + GRANULE_MS) >= LIMIT, `${key} refused with room left`)
      if (logOf(own, key).used(now, WINDOW_MS + GRANULE_MS) < LIMIT) shared++
    }
    assert.ok(shared > 10_000, `${shared} refusals for what others had used`)
    assert.is(limiter.stats().evictedLive, 0)
  }))

/**
 * The expected number of pairs of n keys with one fingerprint: n(n - 1)/2 in 2^bits, about n^2/2^(bits + 1).
 */
function expectedPairs(keys: number, bits: number): number {
  return (keys * (keys - 1)) / 2 / 2 ** bits
}

test('the number of pairs with one 8-bit fingerprint matches n²/2^9; the odds for 57 bits follow', () =>
  withShortFingerprints((build) => {
    const keys = 400
    const rounds = 20
    let pairs = 0
    for (let round = 0; round < rounds; round++) {
      const { fingerprintOf } = limiterOf(build)
      const counts = new Map<number, number>()
      for (let i = 0; i < keys; i++) {
        const fingerprint = fingerprintOf(`round ${round} key ${i}`)
        const before = counts.get(fingerprint) ?? 0
        pairs += before
        counts.set(fingerprint, before + 1)
      }
    }
    const expected = rounds * expectedPairs(keys, 8)
    // Pairs are pairwise independent, so the variance of their count is at most its mean. Six deviations are
    // one in 10^9.
    assert.ok(Math.abs(pairs - expected) < 6 * Math.sqrt(expected), `${pairs} pairs, ${expected} expected`)
    for (let digits = 4; digits <= 9; digits++) {
      const odds = expectedPairs(10 ** digits, 64)
      assert.ok(Math.abs(odds / (10 ** (2 * digits) / 2 ** 65) - 1) < 1e-3)
      console.log(
        `10^${digits} keys: ${odds.toExponential(1)} pairs expected, one in ${(1 / odds).toPrecision(2)}`,
      )
    }
  }))

test.run()
