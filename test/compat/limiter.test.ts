// run: typescript, also-long
// The package limiter and ours, side by side. Sources: the readme, the types and the comments of limiter 4. The
// original reads `performance.now`, ours `Date.now`: the tests turn both.

import * as original from 'limiter'
import { createLimiter, manualClock } from 'millrace'
import * as ours from 'millrace/compat/limiter'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { type FakeDate, withFakeDate } from './fake-date.js'

const KINDS = { original, Millrace: ours } as const

/** Turns `performance.now`, too: by the same milliseconds. */
async function withFakeTime(body: (date: FakeDate) => void | Promise<void>): Promise<void> {
  const real = performance.now
  performance.now = () => Date.now() % 1e9
  try {
    await withFakeDate(body)
  } finally {
    performance.now = real
  }
}

for (const [name, { RateLimiter, TokenBucket }] of Object.entries(KINDS)) {
  const each = suite(`limiter: ${name}`)
  const timed = (what: string, body: (date: FakeDate) => void | Promise<void>) =>
    each(what, () => withFakeTime(body))
  const limited = (tokensPerInterval = 10, interval: ours.Interval = 'second') =>
    new RateLimiter({ tokensPerInterval, interval })

  timed('a rate limiter is full at first, and takes tokens while there are enough', (date) => {
    const limiter = limited()
    assert.is(limiter.getTokensRemaining(), 10)
    assert.ok(limiter.tryRemoveTokens(7))
    assert.is(limiter.getTokensRemaining(), 3)
    assert.not(limiter.tryRemoveTokens(4))
    assert.is(limiter.getTokensRemaining(), 3)
    date.tick(100)
    assert.is(limiter.getTokensRemaining(), 4)
    assert.not(limiter.tryRemoveTokens(4), 'at most 10 in an interval')
    assert.ok(limiter.tryRemoveTokens(3))
    date.tick(900)
    assert.ok(limiter.tryRemoveTokens(10))
  })

  timed('it says how long to wait', (date) => {
    const limiter = limited()
    assert.is(limiter.getWaitTime(10), 0)
    limiter.tryRemoveTokens(10)
    assert.is(limiter.getWaitTime(1), 1000, 'until the interval ends')
    date.tick(999)
    assert.is(limiter.getWaitTime(1), 1)
    assert.not(limiter.tryRemoveTokens(1))
    date.tick(1)
    assert.ok(limiter.tryRemoveTokens(1))
  })

  timed('the bucket of a rate limiter can be changed', (date) => {
    const limiter = limited()
    Object.assign(limiter.tokenBucket!, { bucketSize: 4, tokensPerInterval: 3, content: 4 })
    assert.not(limiter.tryRemoveTokens(4), 'at most 3 in an interval')
    assert.is(limiter.getWaitTime(4), 1000)
    assert.throws(() => limiter.getWaitTime(5))
    assert.ok(limiter.tryRemoveTokens(3))
    date.tick(1000)
    assert.is(limiter.getTokensRemaining(), 4)
    assert.ok(limiter.tryRemoveTokens(3))
  })

  timed('units are seconds, minutes, hours and days, or milliseconds', (date) => {
    const lengths = { sec: 1e3, second: 1e3, min: 6e4, minute: 6e4, hr: 36e5, hour: 36e5, day: 864e5 }
    for (const [unit, ms] of Object.entries(lengths)) {
      const limiter = limited(1, unit as ours.Interval)
      assert.ok(limiter.tryRemoveTokens(1))
      const waitMs = limiter.getWaitTime(1) // rounded up, after a division
      assert.ok(waitMs === ms || waitMs === ms + 1, `${unit}: ${waitMs}`)
    }
    const limiter = limited(1, 250)
    limiter.tryRemoveTokens(1)
    date.tick(250)
    assert.ok(limiter.tryRemoveTokens(1))
    assert.throws(
      () => limited(1, 'week' as ours.Interval),
      (error: Error) => !(error instanceof RangeError),
    )
    for (const wrong of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(
        () => limited(1, wrong),
        (error: Error) => error instanceof RangeError,
      )
  })

  timed('a number of tokens that is none throws a RangeError', async () => {
    const limiter = limited()
    for (const count of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, '1' as unknown as number]) {
      const isRangeError = (error: Error) => error instanceof RangeError
      assert.throws(() => limiter.tryRemoveTokens(count), isRangeError)
      assert.throws(() => limiter.getWaitTime(count), isRangeError)
      assert.ok(await limiter.removeTokens(count).catch(isRangeError), String(count))
      assert.throws(() => limited(count), isRangeError)
    }
    assert.not(limiter.tryRemoveTokens(11), 'more than there can be')
    assert.throws(
      () => limiter.getWaitTime(11),
      (error: Error) => error instanceof RangeError,
    )
    assert.ok(await limiter.removeTokens(11).catch((error) => error instanceof RangeError))
  })

  timed('fireImmediately answers at once, with -1 if there are not enough tokens', async () => {
    const limiter = new RateLimiter({ tokensPerInterval: 2, interval: 'hour', fireImmediately: true })
    assert.is(await limiter.removeTokens(1), 1)
    assert.is(await limiter.removeTokens(2), -1)
    assert.is(await limiter.removeTokens(1), 0)
    assert.is(await limiter.removeTokens(1), -1)
  })

  timed('removeTokens takes tokens that there are before it returns', async () => {
    const limiter = limited(2)
    const left = limiter.removeTokens(1)
    assert.is(limiter.getTokensRemaining(), 1)
    assert.is(await left, 1)
  })

  each('removeTokens waits for tokens, one call after the other', async () => {
    const limiter = limited(2, 40)
    const started = Date.now()
    const order: number[] = []
    const call = (n: number) => limiter.removeTokens(1).then(() => order.push(n))
    await Promise.all([1, 2, 3, 4, 5].map(call))
    assert.equal(order, [1, 2, 3, 4, 5])
    assert.ok(Date.now() - started >= 70, 'two more intervals')
  })

  timed('a bucket is empty at first, and tokens come evenly, with fractions', (date) => {
    const bucket = new TokenBucket({ bucketSize: 10, tokensPerInterval: 1, interval: 100 })
    assert.is(bucket.content, 0)
    assert.not(bucket.tryRemoveTokens(1))
    assert.is(bucket.getWaitTime(1), 100)
    date.tick(50)
    assert.not(bucket.drip(), 'half a token')
    assert.is(bucket.content, 0.5)
    assert.is(bucket.getWaitTime(1), 50)
    date.tick(50)
    assert.ok(bucket.drip())
    assert.ok(bucket.tryRemoveTokens(0.5))
    assert.is(bucket.content, 0.5)
    date.tick(1e6)
    bucket.drip()
    assert.is(bucket.content, 10, 'full')
    assert.throws(
      () => bucket.getWaitTime(11),
      (error: Error) => error instanceof RangeError,
    )
    assert.not(bucket.tryRemoveTokens(11))
  })

  timed('a count that never fits lets no tokens come', (date) => {
    const options = { bucketSize: 2, tokensPerInterval: 2, interval: 'second' } as const
    const parentBucket = new TokenBucket(options)
    for (const parent of [undefined, parentBucket]) {
      const bucket = new TokenBucket(options)
      bucket.parentBucket = parent as never
      date.tick(1000)
      assert.not(bucket.tryRemoveTokens(3))
      assert.is(bucket.content, 0)
      assert.ok(bucket.drip())
    }
  })

  timed('a bucket of size 0 has no limit, one without an influx is always full', async () => {
    const endless = new TokenBucket({ bucketSize: 0, tokensPerInterval: 0, interval: 'second' })
    assert.ok(endless.tryRemoveTokens(1e9))
    assert.is(await endless.removeTokens(1e9), Number.POSITIVE_INFINITY)
    const full = new TokenBucket({ bucketSize: 5, tokensPerInterval: 0, interval: 'second' })
    for (let i = 0; i < 3; i++) assert.ok(full.tryRemoveTokens(5))
    assert.not(full.tryRemoveTokens(6))
    assert.ok(full.tryRemoveTokens(0.5))
    assert.equal([full.drip(), full.drip(), full.content], [true, false, 5])
  })

  timed('tokens are taken from all parents, or from none', async (date) => {
    const parentBucket = new TokenBucket({ bucketSize: 5, tokensPerInterval: 5, interval: 'second' })
    const bucket = new TokenBucket({
      bucketSize: 10,
      tokensPerInterval: 10,
      interval: 'second',
    })
    bucket.parentBucket = parentBucket as never
    date.tick(1000)
    assert.not(bucket.tryRemoveTokens(6), 'more than the parent holds')
    assert.is(bucket.content, 10)
    assert.is(await bucket.removeTokens(2), 3)
    assert.equal([bucket.content, parentBucket.content], [8, 3])
    assert.not(bucket.tryRemoveTokens(4))
    assert.is(bucket.getWaitTime(4), 200, 'for the parent')
  })

  timed('buckets that are parents of each other throw', () => {
    const bucket = new TokenBucket({ bucketSize: 1, tokensPerInterval: 1, interval: 'second' })
    bucket.parentBucket = bucket as never
    assert.throws(() => bucket.tryRemoveTokens(1), /parentBucket/)
  })

  each.run()
}

const own = suite('limiter: only ours')

own('random calls: equal answers', () =>
  fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 2.5, 10, 150),
      fc.constantFrom(7, 1000, 'minute' as const),
      fc.array(fc.tuple(fc.constantFrom('take', 'wait', 'left', 'tick'), fc.nat(12)), { maxLength: 40 }),
      (tokensPerInterval, interval, steps) =>
        withFakeTime((date) => {
          const pair = Object.values(KINDS).map(
            ({ RateLimiter }) => new RateLimiter({ tokensPerInterval, interval }),
          )
          for (const [i, [what, n]] of steps.entries()) {
            if (what === 'tick') date.tick([0, 1, 3, 250, 999, 1000, 7000][n % 7]!)
            const [expected, actual] = pair.map((limiter) => {
              if (what === 'take') return limiter.tryRemoveTokens(n / 2)
              if (what === 'wait') return limiter.getWaitTime(Math.min(n / 2, tokensPerInterval))
              return limiter.getTokensRemaining()
            })
            assert.is(actual, expected, `step ${i} of ${JSON.stringify(steps)}`)
          }
        }),
    ),
    { numRuns: 500, seed: 3 },
  ),
)

own('with the option limiter the tokens are the units of a key', async () => {
  const clock = manualClock()
  const limiter = createLimiter({ limit: 3, window: '1s', clock })
  const [one, other] = ['tokens', undefined].map(
    (key) => new ours.RateLimiter({ limiter, ...(key && { key }) }),
  )
  assert.ok(one!.tryRemoveTokens(2))
  assert.is(other!.getTokensRemaining(), 1)
  assert.not(other!.tryRemoveTokens(2))
  assert.is(other!.getWaitTime(2), limiter.peek('tokens', 2).retryAfterMs)
  assert.is(await other!.removeTokens(0.5), 0, 'a fraction takes a whole unit')
  assert.not(one!.tryRemoveTokens(4))
  assert.is(one!.tokenBucket, undefined)
  let isServed = false
  const waiting = one!.removeTokens(1).then(() => (isServed = true))
  await Promise.resolve()
  assert.not(isServed)
  clock.advance(1100)
  await waiting
})

own.run()
