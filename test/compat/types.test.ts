// The types of the packages that are replaced, compared by the compiler: what it accepts of the original, it accepts
// of ours. The assignments are the test; it fails to compile without them.
import type { Store } from 'express-rate-limit'
import * as original from 'limiter'
import { MillraceStore } from 'millrace/compat/express-rate-limit'
import * as ours from 'millrace/compat/limiter'
import { RateLimiterMemory } from 'millrace/compat/rate-limiter-flexible'
import type { RateLimiterAbstract } from 'rate-limiter-flexible'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError } from '../limiter/support.js'

/** The public members of a class: private ones make it unlike every other. */
type Public<T> = { [Name in keyof T]: T[Name] }

test('limiter: every exported name is there, its options are accepted, and its members have its types', () => {
  for (const name of Object.keys(original)) assert.ok(name in ours, name)
  const options: original.RateLimiterOpts = { tokensPerInterval: 5, interval: 'second' }
  const accepted: ours.RateLimiterOpts = options
  const back: original.RateLimiterOpts = accepted
  const bucketOptions: Omit<original.TokenBucketOpts, 'parentBucket'> & ours.TokenBucketOpts = {
    bucketSize: 5,
    tokensPerInterval: 1,
    interval: 'second',
  }
  const limiter: Omit<Public<original.RateLimiter>, 'tokenBucket'> = new ours.RateLimiter(back)
  const bucket: Omit<Public<original.TokenBucket>, 'parentBucket'> = new ours.TokenBucket(bucketOptions)
  assert.is(new ours.RateLimiter(accepted).tokenBucket.bucketSize, 5)
  assert.type(limiter.curIntervalStart, 'number')
  assert.is(bucket.bucketSize, 5)
})

test('rate-limiter-flexible: every method takes the arguments of the original', async () => {
  type Methods = Pick<
    RateLimiterAbstract,
    'consume' | 'penalty' | 'reward' | 'get' | 'set' | 'block' | 'delete'
  >
  const limiter: Methods = new RateLimiterMemory({ points: 5, duration: 1 })
  await limiter.set('key', 2, 10, { any: 1 })
  assert.is((await limiter.get('key', {}))?.consumedPoints, 2)
  await limiter.block('key', 10, {})
  assert.ok(await limiter.delete('key', {}))
})

test('express-rate-limit: a window below 1 counts, and an init that throws keeps the limit and the window before', async () => {
  for (const windowMs of [0.5, 0, -1, Number.NaN]) {
    const store: Store = new MillraceStore()
    store.init!({ windowMs, limit: 2 } as never)
    assert.is((await store.increment('key')).totalHits, 1)
  }
  const store = new MillraceStore({ maxWindows: 1 })
  store.init({ windowMs: 60_000, limit: 5 } as never)
  try {
    store.init({ windowMs: 120_000, limit: 2 } as never)
    assert.unreachable()
  } catch (error) {
    assertIsError(error, 'ERR_MILLRACE_INVALID_OPTION', 'maxWindows')
  }
  assert.is(store.windowMs, 60_000)
  // Refused hits are not held against the key for longer than the limit of 2 that init was given.
  for (let i = 1; i <= 4; i++) assert.is((await store.increment('key')).totalHits, i)
})

test.run()
