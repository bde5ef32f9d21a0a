// run: also-full, also-long
import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'

const MANY = sized({ quick: 20_000, full: 300_000, long: 1_000_000 })
const SPRAYED = sized({ quick: 40_000, full: 1_000_000, long: 3_000_000 })
const PROBES = sized({ quick: 200, full: 1_000 })

/** How often a new table is filled. */
const ROUNDS = sized({ quick: 20, full: 60 })

const inWords = (count: number) => count.toLocaleString('en')

test(`${inWords(MANY)} keys in a table of that size: none refused for lack of room, none forgotten`, async () => {
  const keys = MANY
  const clock = manualClock(1e9)
  const limiter = createLimiter({ limit: 2, window: '1h', granularity: '6m', maxKeys: keys, clock })
  for (const expected of [true, true, false]) {
    for (let i = 0; i < keys; i++) {
      if (limiter.check(`user:${i}`).allowed !== expected)
        assert.unreachable(`user:${i} should be ${expected}`)
    }
    clock.advance(1_000)
  }
  const { allowed, denied, evicted, evictedLive, noRoom, keys: live } = limiter.stats()
  assert.equal([allowed, denied, evicted, evictedLive, noRoom], [2 * keys, keys, 0, 0, 0])
  assert.ok(Math.abs(live - keys) < keys / 100, `${live} keys by estimate`)
  await limiter.close()
})

test('a table that stays at its design load finds room for new keys as old keys expire', () => {
  const keys = 5_000
  const clock = manualClock(1e9)
  const limiter = createLimiter({ limit: 1, window: 1_000, granularity: 100, maxKeys: keys, clock })
  for (let i = 0; i < ROUNDS * keys; i++) {
    // A key keeps its way for 1,100 to 1,200 ms, so at most 5,000 keys hold one.
    if (i % (keys / 100) === 0) clock.advance(12)
    limiter.check(`user:${i}`)
  }
  const { allowed, evictedLive, noRoom } = limiter.stats()
  assert.ok(allowed >= 0.9999 * ROUNDS * keys, `${allowed} of ${ROUNDS * keys}`)
  assert.ok(
    evictedLive + noRoom <= 0.0001 * ROUNDS * keys,
    `${evictedLive} displaced, ${noRoom} without room`,
  )
})

test(`${inWords(SPRAYED)} sprayed keys gain no fresh quota, and a key at its limit stays there`, () => {
  const limit = 100
  const limiter = createLimiter({
    limit,
    window: '1h',
    granularity: '6m',
    maxKeys: 10_000,
    clock: manualClock(1e9),
  })
  const victim = limiter.handle('victim')
  while (limiter.check(victim).allowed);
  let sprayed = 0
  const spray = (count: number) => {
    for (const end = sprayed + count; sprayed < end; sprayed++) limiter.check(`sprayed ${sprayed}`)
  }
  for (let i = 0; i < 100; i++) {
    spray(SPRAYED / 100)
    assert.not(limiter.check(victim).allowed, `admitted again after ${sprayed} keys`)
  }
  assert.ok(limiter.stats().evictedLive > SPRAYED / 10)
  let again = 0
  for (let probe = 0; probe < PROBES; probe++) {
    const key = `probe ${probe}`
    while (limiter.check(key).allowed);
    spray(20)
    if (limiter.check(key).allowed) again++
  }
  assert.is(again, 0)
})

test('every key has two sets, in the smallest table too', () => {
  const limiter = createLimiter({
    limit: 1,
    window: '1m',
    maxKeys: 1,
    onFull: 'deny',
    clock: manualClock(1e9),
  })
  for (let i = 0; i < 32; i++) assert.ok(limiter.check(`key ${i}`).allowed)
  assert.not(limiter.check('one more').allowed)
  assert.is(limiter.stats().noRoom, 1)
})

test.run()
