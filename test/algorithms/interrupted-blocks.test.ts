// run: typescript, full
// Blocks that another thread makes, renews, ends or evicts meanwhile.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { everywhere, HOUR, PLACES } from './interrupted-plays.js'

test('an unblock of a key whose way was taken does not end the block of the new key', () => {
  everywhere({
    options: { onFull: 'deny' },
    before: ({ limiter }) => limiter.block('key', 1_000),
    act: (limiter) => limiter.unblock('key'),
    between: ({ clock, other }) => {
      clock.advance(62_000)
      assert.ok(other.block('rival', HOUR))
    },
    judge: ({ limiter }, _, at) => assert.not(limiter.check('rival').allowed, at),
  })
})

test('a block has ended once `unblock` returns, despite concurrent charges', () => {
  everywhere({
    before: ({ limiter }) => limiter.block('key', HOUR),
    act: (limiter) => limiter.unblock('key'),
    between: ({ other }) => other.penalize('key', 1),
    judge: ({ limiter }, wasBlocked, at) => {
      assert.ok(wasBlocked)
      assert.is(limiter.check('key').remaining, 3, at)
    },
  })
})

test('an unblock keeps a concurrent penalty, and a concurrent new block', () => {
  everywhere({
    before: ({ limiter }) => limiter.block('key', HOUR),
    act: (limiter) => limiter.unblock('key'),
    between: ({ other }) => {
      other.penalize('key', 5)
      other.block('key', HOUR)
    },
    judge: ({ limiter }, wasBlocked, at) => {
      assert.ok(wasBlocked)
      assert.not(limiter.check('key').allowed, at)
    },
  })
})

test('a block that is renewed during an eviction stays, and the block that then ends first is evicted', () => {
  const others = Array.from({ length: PLACES / 2 - 1 }, (_, i) => `other ${i}`)
  everywhere({
    places: PLACES,
    before: ({ limiter }) => {
      limiter.block('first', HOUR)
      for (const [i, key] of others.entries()) limiter.block(key, (2 + i) * HOUR)
    },
    act: (limiter) => limiter.block('new', 100 * HOUR),
    between: ({ other }) => other.block('first', Number.POSITIVE_INFINITY),
    judge: ({ limiter }, isBlocked, at) => {
      assert.ok(isBlocked)
      const kept = ['first', 'new', ...others].filter((key) => !limiter.peek(key, 0).allowed)
      assert.equal(kept, ['first', 'new', ...others.slice(1)], at)
    },
  })
})

test.run()
