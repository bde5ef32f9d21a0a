// run: also-long

import type { Duration } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { limiterWith, START_MS } from './support.js'

test('a blocked key is refused despite remaining units, until the block is over', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key')
  assert.is(limiter.block('key', '10s'), true)
  const refused = limiter.check('key')
  assert.equal([refused.allowed, refused.remaining, refused.retryAfterMs], [false, 0, 10_000])
  assert.not(limiter.peek('key').allowed)
  assert.equal([...limiter.checkMany(['key', 'other']).allowed], [0, 1])
  clock.advance(9_999)
  assert.not(limiter.check('key').allowed)
  clock.advance(1)
  assert.is(limiter.check('key').remaining, 3, 'what it had used before still counts, the refusals do not')
})

test('a block is rounded up to sixteenths of a second: never shorter, at most 62.5 ms longer', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.001, max: 1e9, noNaN: true }),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      (ms, startMs) => {
        const { clock, limiter } = limiterWith()
        clock.advance(startMs)
        limiter.block('key', ms)
        const blockedAt = clock.now()
        const { retryAfterMs } = limiter.peek('key')
        assert.ok(
          retryAfterMs >= Math.floor(ms) && retryAfterMs <= Math.ceil(ms + 62.5) + 1,
          `${retryAfterMs}`,
        )
        clock.set(blockedAt + ms - Math.max(1e-3, ms * 1e-9))
        if (clock.now() > blockedAt) assert.not(limiter.peek('key').allowed, 'shorter')
        clock.set(blockedAt + ms + 62.51)
        assert.ok(limiter.peek('key').allowed, 'longer')
      },
    ),
  )
})

test('a block that ends in the step of an earlier one of its key lasts no longer', () => {
  const { limiter } = limiterWith()
  for (const ms of [10_000, 10_000, 20_000, 10_000]) {
    for (const end of [() => {}, () => limiter.unblock('key'), () => limiter.clear('key')]) {
      limiter.block('key', ms)
      assert.is(limiter.check('key').retryAfterMs, ms)
      end()
    }
  }
})

test('a key that takes the place of one with the same end is blocked for a step more, once', () => {
  const { clock, limiter } = limiterWith({ maxKeys: 1 })
  const lasts = (key: string, ms: number) => {
    assert.ok(limiter.block(key, ms))
    return limiter.check(key).retryAfterMs
  }
  const keys = (name: string) => Array.from({ length: 32 }, (_, i) => `${name} ${i}`)
  for (const key of keys('former')) {
    assert.is(lasts(key, 1_000_000), 1_000_000)
    limiter.unblock(key)
  }
  clock.advance(900_000) // nothing counts any more: the places are free
  for (const key of keys('new')) {
    assert.is(lasts(key, 100_000), 100_063)
    limiter.unblock(key)
    assert.is(lasts(key, 50_000), 50_000)
    limiter.unblock(key)
  }
  assert.is(limiter.stats().noRoom, 0)
})

test('retryAfterMs of a block that ends between two milliseconds is the later one', () => {
  const { clock, limiter } = limiterWith()
  limiter.block('key', 62) // until 62.5
  assert.is(limiter.check('key').retryAfterMs, 63)
  clock.advance(62)
  assert.not(limiter.check('key').allowed)
  clock.advance(1)
  assert.ok(limiter.check('key').allowed)
})

test('the longest representable block ends, and one a millisecond longer never does', () => {
  const longestMs = ((2 ** 31 - 2 ** 20) / 16) * 1_000
  const { clock, limiter } = limiterWith()
  limiter.block('key', longestMs)
  limiter.block('other', longestMs + 1)
  assert.is(limiter.check('key').retryAfterMs, longestMs)
  assert.is(limiter.check('other').retryAfterMs, Number.POSITIVE_INFINITY)
  clock.advance(longestMs)
  assert.ok(limiter.check('key').allowed)
  assert.not(limiter.check('other').allowed)
})

test('a block that would end at the one sixteenth whose word means "never" ends a sixteenth later', () => {
  const { clock, limiter } = limiterWith() // sixteenths count from START_MS
  clock.set(START_MS + (0xffffffff * 1_000) / 16 - 10_000)
  limiter.block('key', 10_000)
  assert.is(limiter.check('key').retryAfterMs, 10_063)
})

test('a block may be given as any duration', () => {
  const forMs: [Duration, number][] = [
    [250, 250],
    ['250ms', 250],
    ['1s', 1_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['30d', 2_592_000_000],
  ]
  for (const [duration, ms] of forMs) {
    const { clock, limiter } = limiterWith()
    limiter.block('key', duration)
    assert.is(limiter.check('key').retryAfterMs, ms)
    clock.advance(ms)
    assert.ok(limiter.check('key').allowed, `${duration}`)
  }
})

test('a block for Infinity, or for more than 8.5 years, is for ever', () => {
  for (const ms of [Number.POSITIVE_INFINITY, '3200d' as const, Number.MAX_VALUE]) {
    const { clock, limiter } = limiterWith()
    limiter.block('key', ms)
    const refused = limiter.check('key')
    assert.equal(
      [refused.retryAfterMs, refused.resetMs],
      [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
    )
    clock.advance(1_000 * 365 * 86_400_000)
    assert.not(limiter.check('key').allowed)
    assert.is(limiter.stats().keys, 1)
    assert.ok(limiter.unblock('key'))
    assert.ok(limiter.check('key').allowed)
  }
})

test('a block replaces the previous one, longer or shorter', () => {
  const { limiter } = limiterWith()
  for (const [ms, retryAfterMs] of [
    ['1h', 3_600_000],
    ['10s', 10_000],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
    ['1m', 60_000],
  ] as const) {
    assert.ok(limiter.block('key', ms))
    assert.is(limiter.check('key').retryAfterMs, retryAfterMs)
  }
})

test('unblock ends a block, keeps the counts, and returns whether there was a block', () => {
  const { clock, limiter } = limiterWith()
  assert.is(limiter.unblock('stranger'), false)
  assert.is(limiter.stats().keys, 0)
  limiter.check('key', 4)
  assert.is(limiter.unblock('key'), false)
  limiter.block('key', '1h')
  assert.is(limiter.unblock('key'), true)
  assert.is(limiter.unblock('key'), false)
  assert.is(limiter.check('key').remaining, 0)
  limiter.block('key', '1s')
  clock.advance(1_000)
  assert.is(limiter.unblock('key'), false, 'it had ended by itself')
})

test('clear ends a block and clears the counts, of that key alone', () => {
  const { clock, limiter } = limiterWith()
  for (const key of ['key', 'other']) {
    limiter.check(key, 2)
    clock.advance(5_000)
    limiter.check(key, 2)
    limiter.block(key, Number.POSITIVE_INFINITY)
  }
  assert.is(limiter.clear('key'), undefined)
  assert.is(limiter.check('key').remaining, 4)
  assert.not(limiter.check('other').allowed)
  limiter.unblock('other')
  assert.is(limiter.check('other').remaining, 0)
  limiter.clear('stranger')
  assert.is(limiter.stats().keys, 2)
})

test('a block outlives the window: the key has no counts left, and stays blocked', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 3)
  limiter.block('key', '1h')
  clock.advance(3_599_999)
  assert.is(limiter.usage('key'), 0)
  assert.not(limiter.peek('key').allowed)
  clock.advance(1)
  assert.ok(limiter.check('key', 5).allowed)
})

test('a block shorter than the window ends before the counts expire', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 5)
  limiter.block('key', '1s')
  assert.is(limiter.check('key').retryAfterMs, 61_000 - (START_MS % 1_000), 'the later of the two')
  clock.advance(1_000)
  assert.not(limiter.check('key').allowed)
  clock.advance(60_000)
  assert.ok(limiter.check('key').allowed)
})

test('penalties and refunds work while the key is blocked', () => {
  const { limiter } = limiterWith()
  limiter.block('key', '1h')
  assert.ok(limiter.penalize('key', 3))
  assert.is(limiter.refund('key', 1), 1)
  assert.not(limiter.check('key').allowed)
  limiter.unblock('key')
  assert.is(limiter.check('key').remaining, 2)
})

test.run()
