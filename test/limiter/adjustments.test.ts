// Penalties, updates, usage, peeks and handles. Refunds and blocks have test files of their own.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, limiterWith, START_MS } from './support.js'

const MAX_LIMIT = 2 ** 22 - 2

test('a penalty is charged without a decision, also beyond the limit', () => {
  const { clock, limiter } = limiterWith()
  assert.is(limiter.penalize('key', 3), true)
  assert.is(limiter.check('key').remaining, 1)
  assert.is(limiter.penalize('key', 100), true)
  const refused = limiter.check('key')
  assert.equal([refused.allowed, refused.remaining], [false, 0])
  assert.is(limiter.usage('key'), 104)
  clock.advance(60_000)
  assert.not(limiter.check('key').allowed, 'it counts for a window')
  clock.advance(1_000)
  assert.is(limiter.check('key').remaining, 4, 'and no longer')
})

test('units penalized beyond the limit must be refunded before there is room', () => {
  const { limiter } = limiterWith()
  limiter.penalize('key', 8)
  assert.is(limiter.refund('key', 3), 3)
  assert.not(limiter.check('key').allowed)
  assert.is(limiter.refund('key', 2), 2)
  assert.ok(limiter.check('key', 2).allowed)
  assert.not(limiter.check('key').allowed)
})

test('penalties above the largest count stop at it: no overflow, no block, gone after a window', () => {
  for (const cost of [1_000_000, MAX_LIMIT, MAX_LIMIT + 1]) {
    const { clock, limiter } = limiterWith({ limit: MAX_LIMIT })
    for (let second = 0; second < 5; second++) {
      for (let i = 0; i < 10; i++) assert.is(limiter.penalize('key', cost), true)
      assert.not(limiter.check('key').allowed, `${cost}`)
      assert.not(limiter.peek('key').allowed)
      assert.is(limiter.check('key').remaining, 0)
      clock.advance(1_000)
    }
    assert.is(limiter.unblock('key'), false, 'it is not blocked')
    clock.advance(61_000)
    assert.ok(limiter.check('key', MAX_LIMIT).allowed, `${cost}: a window later`)
    assert.not(limiter.check('key').allowed)
  }
})

test('penalties of several granules whose sum is above the largest total leave no room', () => {
  const { clock, limiter } = limiterWith({ limit: MAX_LIMIT })
  for (const cost of [3_000_000, 2_000_000, 1_000_000, 3_000_000]) {
    limiter.penalize('key', cost)
    clock.advance(1_000)
    if (cost < 3_000_000) assert.not(limiter.check('key').allowed)
  }
  assert.is(limiter.usage('key'), 9_000_000)
})

test('a granule with room for one more unit takes one unit of a larger penalty', () => {
  const { limiter } = limiterWith({ limit: MAX_LIMIT })
  limiter.penalize('key', MAX_LIMIT)
  limiter.penalize('key', 5)
  assert.is(limiter.usage('key'), MAX_LIMIT + 1)
})

test('a penalty of any size does not restore an ended block', () => {
  for (const cost of [1, MAX_LIMIT, MAX_LIMIT + 1]) {
    const { clock, limiter } = limiterWith({ limit: MAX_LIMIT })
    limiter.block('key', '1h')
    limiter.unblock('key')
    limiter.penalize('key', cost)
    clock.advance(1_000)
    limiter.penalize('key', cost)
    const { allowed, retryAfterMs } = limiter.check('key', MAX_LIMIT)
    assert.equal([allowed, retryAfterMs <= 61_000], [false, true], `${cost}: for ${retryAfterMs} ms`)
    assert.is(limiter.unblock('key'), false)
  }
})

test('a penalty above the largest count of a granule is refused, and charges nothing', () => {
  const { limiter } = limiterWith({ limit: MAX_LIMIT })
  for (const cost of [MAX_LIMIT + 2, 1e9, 2 ** 32, Number.MAX_SAFE_INTEGER, 1e300]) {
    assertRaises(() => limiter.penalize('key', cost), 'ERR_MILLRACE_INVALID_COST', 'cost', `${cost}`)
  }
  assert.is(limiter.stats().keys, 0)
  limiter.penalize('key', MAX_LIMIT + 1)
  assert.is(limiter.usage('key'), MAX_LIMIT + 1)
})

test('a penalty of 0 returns true and does not insert the key', () => {
  const { limiter } = limiterWith()
  assert.is(limiter.penalize('key', 0), true)
  assert.is(limiter.stats().keys, 0)
})

test('a lowered limit holds at once; earlier admissions keep counting', () => {
  const { clock, limiter } = limiterWith({ name: 'api' })
  limiter.check('key', 4)
  assert.is(limiter.update('api', { limit: 2 }), undefined)
  const refused = limiter.check('key')
  assert.equal([refused.allowed, refused.limit, refused.remaining], [false, 2, 0])
  assert.is(limiter.check('key', 3).retryAfterMs, Number.POSITIVE_INFINITY)
  assert.is(limiter.usage('key'), 4)
  clock.advance(61_000)
  assert.ok(limiter.check('key', 2).allowed)
  assert.not(limiter.check('key').allowed)
})

test('a raised limit holds at once, also for a key that was just refused', () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  assert.not(limiter.check('key').allowed)
  limiter.update('default', { limit: 7 })
  assert.equal([limiter.check('key').remaining, limiter.check('key').remaining], [1, 0])
  assert.not(limiter.check('key').allowed)
  limiter.update('default', { limit: MAX_LIMIT })
  assert.ok(limiter.check('key', MAX_LIMIT - 7).allowed)
  assert.not(limiter.check('key').allowed)
})

test('usage counts the granules that overlap the last part of the window', () => {
  const { clock, limiter } = limiterWith({ limit: 100 })
  clock.set(1_000_000)
  for (let second = 0; second < 10; second++) {
    limiter.check('key', second + 1)
    clock.advance(1_000)
  }
  clock.advance(-1) // at the last millisecond of the tenth second
  assert.is(limiter.usage('key', 1), 10)
  assert.is(limiter.usage('key', 999), 10)
  assert.is(limiter.usage('key', 1_000), 10 + 9, 'a granule that overlaps counts whole')
  assert.is(limiter.usage('key', '4s'), 10 + 9 + 8 + 7 + 6)
  assert.equal([limiter.usage('key'), limiter.usage('key', '1m')], [55, 55])
  assert.is(limiter.usage('stranger'), 0)
  assert.is(limiter.stats().keys, 1)
  clock.set(1_061_000)
  assert.is(limiter.usage('key'), 55 - 1, 'the first second has left the window')
})

test('a peek decides as a check would, charges nothing and inserts nothing', () => {
  const { limiter } = limiterWith()
  for (let i = 0; i < 10; i++)
    assert.equal([limiter.peek('key', 5).allowed, limiter.peek('key', 5).remaining], [true, 5])
  assert.is(limiter.stats().keys, 0)
  limiter.check('key', 4)
  assert.equal([limiter.peek('key').allowed, limiter.peek('key', 2).allowed], [true, false])
  assert.is(limiter.peek('key', 2).retryAfterMs, limiter.check('key', 2).retryAfterMs)
  assert.is(limiter.peek('key').remaining, 1)
  const { allowed, denied } = limiter.stats()
  assert.equal([allowed, denied], [1, 1], 'the statistics do not count peeks')
})

test('a handle and its string are the same key, in every method', () => {
  const { limiter } = limiterWith()
  const handle = limiter.handle('key')
  assert.is(limiter.stats().keys, 0, 'making a handle inserts nothing')
  assert.is(limiter.check(handle).remaining, 4)
  assert.is(limiter.check('key').remaining, 3)
  assert.is(limiter.peek(handle).remaining, 3)
  assert.is(limiter.usage(handle), 2)
  assert.is(limiter.checkMany([handle, 'key'], 1, { remaining: true }).remaining![1], 1)
  assert.is(limiter.penalize(handle, 1), true)
  assert.is(limiter.refund(handle, 2), 2)
  assert.is(limiter.usage('key'), 3)
  limiter.block(handle, '1h')
  assert.not(limiter.check('key').allowed)
  assert.is(limiter.unblock(handle), true)
  limiter.clear(handle)
  assert.is(limiter.usage('key'), 0)
  assert.is(limiter.stats().keys, 1)
})

test('a handle stays valid after its key was displaced and inserted again', () => {
  const { clock, limiter } = limiterWith({ limit: 1_000 })
  const handle = limiter.handle('key')
  for (let round = 0; round < 20; round++) {
    limiter.check(handle)
    for (let i = 0; i < 64; i++) limiter.check(`${round} ${i}`, 3)
    clock.advance(100)
  }
  assert.ok(limiter.stats().evictedLive > 500)
  clock.advance(61_000)
  for (let i = 0; i < 20; i++) limiter.check(`new ${i}`)
  assert.is(limiter.check(handle).remaining, 999)
  assert.is(limiter.check('key').remaining, 998)
  assert.is(limiter.check(handle).remaining, 997)
})

test('packed keys are hashed once and may be checked any number of times', () => {
  const { clock, limiter } = limiterWith({ limit: 2 })
  const packed = limiter.pack(['a', limiter.handle('b'), 'a'])
  assert.is(packed.length, 3)
  assert.is(limiter.stats().keys, 0)
  assert.equal([...limiter.checkMany(packed).allowed], [1, 1, 1])
  assert.equal([...limiter.checkMany(packed).allowed], [0, 1, 0])
  clock.advance(61_000 + (START_MS % 1_000))
  assert.equal([...limiter.checkMany(packed).allowed], [1, 1, 1])
})

test.run()
