// `maxKeys: 20` makes the smallest table: two sets of 16 places. Every key may be in each of the 32.
import type { Limiter, LimiterOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith, START_MS } from './support.js'

const PLACES = 32
const LIMIT = 100
const FIRST_GONE_MS = 61_000 - (START_MS % 1_000) // a charge at START_MS counts until then
const FIRST_FREE_MS = FIRST_GONE_MS + 1_000 // its place is free a granule later: other clocks may be behind

/**
 * Key `0` has used 1 unit, key `1` has used 2, and so on. The first at START_MS, each of the others a second
 * later.
 */
function fullTable(options: Partial<LimiterOptions> = {}) {
  const { clock, limiter } = limiterWith({ limit: LIMIT, maxKeys: 20, ...options })
  for (let i = 0; i < PLACES; i++) {
    clock.set(START_MS + i * 1_000)
    assert.ok(limiter.check(`${i}`, i + 1).allowed)
  }
  return { clock, limiter }
}

function countsOf(limiter: Limiter) {
  const { keys, evicted, evictedLive, noRoom } = limiter.stats()
  return { keys, evicted, evictedLive, noRoom }
}

for (const onFull of ['evict', 'deny', 'allow'] as const) {
  test(`${onFull}: the keys of a full table keep their places and counts`, () => {
    const { limiter } = fullTable({ onFull })
    for (let i = 0; i < PLACES; i++) assert.is(limiter.check(`${i}`).remaining, LIMIT - i - 2)
    assert.equal(countsOf(limiter), { keys: PLACES, evicted: 0, evictedLive: 0, noRoom: 0 })
  })

  test(`${onFull}: a new key prefers the place of an expired key, and starts without counts`, () => {
    const { clock, limiter } = fullTable({ onFull })
    clock.set(START_MS + FIRST_FREE_MS)
    assert.is(limiter.stats().keys, PLACES, 'the expired key keeps its place until then')
    const { allowed, remaining } = limiter.check('new')
    assert.equal([allowed, remaining], [true, LIMIT - 1])
    for (let i = 2; i < PLACES; i++) assert.is(limiter.usage(`${i}`), i + 1)
    assert.equal(countsOf(limiter), { keys: PLACES, evicted: 1, evictedLive: 0, noRoom: 0 })
  })

  test(`${onFull}: peek, usage, refund, unblock and clear of a new key do not change a full table`, () => {
    const { limiter } = fullTable({ onFull })
    limiter.peek('new')
    limiter.check('new', 0)
    limiter.check('new', LIMIT + 1)
    assert.is(limiter.usage('new'), 0)
    assert.is(limiter.refund('new', 1), 0)
    assert.is(limiter.unblock('new'), false)
    limiter.clear('new')
    for (let i = 0; i < PLACES; i++) assert.is(limiter.usage(`${i}`), i + 1)
    assert.equal(countsOf(limiter), { keys: PLACES, evicted: 0, evictedLive: 0, noRoom: 0 })
  })

  test(`${onFull}: a peek of a new key in a full table predicts the check`, () => {
    for (const cost of [1, LIMIT - 1, LIMIT]) {
      const { limiter } = fullTable({ onFull })
      const peeked = limiter.peek('new', cost).toJSON()
      const checked = limiter.check('new', cost)
      assert.is(peeked.allowed, checked.allowed)
      assert.is(peeked.retryAfterMs, checked.retryAfterMs)
    }
  })
}

test('evict: a new key displaces the key with the least usage, and inherits its counts', () => {
  const { limiter } = fullTable({ onFull: 'evict' })
  assert.is(limiter.check('new').remaining, LIMIT - 1 - 1)
  assert.is(limiter.usage('new'), 2)
  assert.is(limiter.usage('0'), 0, 'displaced')
  for (let i = 1; i < PLACES; i++) assert.is(limiter.usage(`${i}`), i + 1)
  assert.equal(countsOf(limiter), { keys: PLACES, evicted: 1, evictedLive: 1, noRoom: 0 })
})

test('evict: inherited counts expire on their original schedule', () => {
  const { clock, limiter } = fullTable({ onFull: 'evict' })
  limiter.check('new')
  clock.set(START_MS + FIRST_GONE_MS - 1)
  assert.is(limiter.peek('new').remaining, LIMIT - 2)
  clock.advance(1)
  assert.is(limiter.peek('new').remaining, LIMIT - 1)
})

test('evict: if every key is at its limit, a new key is refused until counts expire', () => {
  const { clock, limiter } = limiterWith({ onFull: 'evict' })
  for (let i = 0; i < PLACES; i++) limiter.check(`${i}`, 5)
  for (const decision of [limiter.peek('new'), limiter.check('new'), limiter.check('another')]) {
    const { allowed, remaining, retryAfterMs } = decision
    assert.equal([allowed, remaining, retryAfterMs], [false, 0, FIRST_GONE_MS])
  }
  assert.is(limiter.stats().noRoom, 0)
  clock.advance(FIRST_GONE_MS)
  assert.is(limiter.check('new').remaining, 4)
})

test('evict: block and penalize insert a key, too, and a penalty adds to the inherited counts', () => {
  const { limiter } = fullTable({ onFull: 'evict' })
  assert.is(limiter.penalize('new', 10), true)
  assert.is(limiter.usage('new'), 11)
  assert.is(limiter.block('blocked', '1h'), true)
  assert.not(limiter.check('blocked').allowed)
  assert.equal(countsOf(limiter), { keys: PLACES, evicted: 2, evictedLive: 2, noRoom: 0 })
})

test('evict: a spray of new keys displaces no block while at most half of the places are blocked', () => {
  const { limiter } = limiterWith({ onFull: 'evict', limit: LIMIT })
  const blocked = Array.from({ length: PLACES / 2 }, (_, i) => `blocked ${i}`)
  for (const key of blocked) limiter.block(key, '1d')
  for (let i = 0; i < 5_000; i++) limiter.check(`sprayed ${i}`)
  for (const key of blocked) assert.not(limiter.check(key).allowed)
  const { evictedLive, blocksEvicted } = limiter.stats()
  assert.equal([evictedLive, blocksEvicted], [5_000 - PLACES / 2, 0])
})

test('evict: the decision of a displaced key can still be refunded, from the counts that its successor inherited', () => {
  const { limiter } = limiterWith({ onFull: 'evict', limit: LIMIT })
  const decision = limiter.check('first', 1)
  for (let i = 1; i < PLACES; i++) limiter.check(`${i}`, 50)
  limiter.check('new', 3)
  assert.is(limiter.usage('new'), 4)
  assert.is(limiter.refund(decision), 1)
  assert.is(limiter.usage('new'), 3)
})

test('deny: a new key is refused until the first place expires, and retryAfterMs says when', () => {
  const { clock, limiter } = fullTable({ onFull: 'deny' })
  const now = clock.now()
  const refused = limiter.check('new')
  const retryAfterMs = START_MS + FIRST_FREE_MS - now
  assert.equal([refused.allowed, refused.remaining, refused.retryAfterMs], [false, 0, retryAfterMs])
  assert.is(limiter.peek('new').retryAfterMs, retryAfterMs)
  assert.is(limiter.checkMany(['new']).retryAfterMs(0), retryAfterMs)
  assert.equal(countsOf(limiter), { keys: PLACES, evicted: 0, evictedLive: 0, noRoom: 2 })
  clock.set(now + retryAfterMs - 1)
  assert.not(limiter.check('new').allowed)
  clock.advance(1)
  assert.is(limiter.check('new').remaining, LIMIT - 1)
  assert.not(limiter.check('newer').allowed, 'one place came free, not two')
  clock.advance(1_000)
  assert.ok(limiter.check('newer').allowed)
})

test('deny: block and penalize of a new key return false for lack of room', () => {
  const { limiter } = fullTable({ onFull: 'deny' })
  assert.is(limiter.block('new', '1h'), false)
  assert.is(limiter.penalize('new', 1), false)
  assert.is(limiter.stats().noRoom, 2)
})

test('allow: a new key is admitted uncounted any number of times, and known keys stay limited', () => {
  const { limiter } = fullTable({ onFull: 'allow' })
  for (let i = 0; i < 3 * LIMIT; i++) {
    const decision = limiter.check('new')
    assert.equal([decision.allowed, decision.remaining, decision.resetMs], [true, LIMIT, 0])
    assert.is(limiter.refund(decision), 0)
  }
  assert.equal(countsOf(limiter), { keys: PLACES, evicted: 0, evictedLive: 0, noRoom: 3 * LIMIT })
  assert.ok(limiter.check('0', LIMIT - 1).allowed)
  assert.not(limiter.check('0').allowed)
  assert.not(limiter.check('new', LIMIT + 1).allowed)
})

test.run()
