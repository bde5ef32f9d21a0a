// The types of the packages that are replaced, compared by the compiler: what it accepts of the original, it accepts
// of ours, but for what the pages name. The assignments of `compatible` are the test: it does not compile without them.

import type fastifyRateLimit from '@fastify/rate-limit'
import type { FastifyRateLimitStore, FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import * as throttler from '@nestjs/throttler'
import * as express from 'express-rate-limit'
import * as limiter from 'limiter'
import * as ourExpress from 'millrace/compat/express-rate-limit'
import * as ourFastify from 'millrace/compat/fastify-rate-limit'
import * as ourLimiter from 'millrace/compat/limiter'
import * as ourThrottler from 'millrace/compat/nestjs-throttler'
import * as ourFlexible from 'millrace/compat/rate-limiter-flexible'
import * as flexible from 'rate-limiter-flexible'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

// biome-ignore lint/suspicious/noExplicitAny: every function is one of these
type Any = any
type Method = (...given: Any[]) => unknown
/** What a caller may do with a result of type `Result`, it may do with an `Own`. */
// biome-ignore lint/suspicious/noConfusingVoidType: a method that returns nothing may return anything
type Answers<Own, Result> = [Result] extends [void] ? true : [Own] extends [Result] ? true : false

/** Whether a member of type `Own` takes the place of one of type `Original`: arguments by value, not by their number. */
type Fits<Own, Original> = [Original] extends [Method]
  ? [Own] extends [Method]
    ? Parameters<Original> extends Parameters<Own>
      ? Answers<Awaited<ReturnType<Own>>, Awaited<ReturnType<Original>>>
      : false
    : false
  : Answers<Own, Original>

/** The members of the original that ours lack or have in another way. */
type Broken<Own, Original> = {
  [Name in keyof Original]-?: Name extends keyof Own
    ? Fits<Own[Name], Original[Name]> extends true
      ? never
      : Name
    : Name
}[keyof Original]

/** The names of options that a literal for the original may have, and one for ours may not. */
type Unknown<Own, Original> = Exclude<keyof Original, keyof Own>

/** Compiles if there is nothing in `Broken` but what the page of the package names. */
const compatible = <_Broken extends Named, Named extends PropertyKey = never>(): void => undefined

test('limiter: names, options and members', () => {
  for (const name of Object.keys(limiter)) assert.ok(name in ourLimiter, name)
  // What has a private member is like no other class: the buckets are compared by their own members.
  compatible<Broken<ourLimiter.RateLimiter, limiter.RateLimiter>, 'tokenBucket'>()
  compatible<Broken<ourLimiter.TokenBucket, limiter.TokenBucket>, 'parentBucket'>()
  compatible<Broken<ourLimiter.RateLimiterOpts, limiter.RateLimiterOpts>>()
  // What ours have in addition.
  compatible<Broken<limiter.RateLimiterOpts, ourLimiter.RateLimiterOpts>, 'nearLimit'>()
  compatible<Broken<limiter.TokenBucketOpts, ourLimiter.TokenBucketOpts>, 'parentBucket' | 'nearLimit'>()
  compatible<Unknown<ourLimiter.TokenBucketOpts, limiter.TokenBucketOpts>>()
  compatible<Exclude<limiter.Interval, ourLimiter.Interval>>()
  const options: ourLimiter.RateLimiterOpts = { tokensPerInterval: 5, interval: 'second' }
  const rateLimiter = new ourLimiter.RateLimiter(options)
  assert.is(rateLimiter.tokenBucket.bucketSize, 5)
  assert.type(rateLimiter.curIntervalStart, 'number')
  assert.is(rateLimiter.tokensThisInterval, 0)
})

test('rate-limiter-flexible: options, members, and what takes a limiter', async () => {
  type Own = ourFlexible.RateLimiterMemory
  type OwnOptions = ConstructorParameters<typeof ourFlexible.RateLimiterMemory>[0] & object
  type Options = ConstructorParameters<typeof flexible.RateLimiterMemory>[0]
  compatible<Broken<Own, flexible.RateLimiterMemory>, 'dump' | 'restore'>()
  compatible<Broken<OwnOptions, Options>>()
  const given: Options = {
    points: 5,
    duration: 1,
    insuranceLimiter: new flexible.RateLimiterMemory({ points: 1, duration: 1 }),
  }
  const own = new ourFlexible.RateLimiterMemory(given)
  const taken: flexible.RateLimiterAbstract & flexible.RateLimiterCompatibleAbstract = own
  await taken.set('key', 2, 10, { any: 1 })
  assert.is((await own.consume('key', 1, { any: 1 })).consumedPoints, 3)
  assert.is((await own.get('key', {}))?.consumedPoints, 3)
  await own.block('key', 10, {})
  assert.ok(await own.delete('key', {}))
})

test('express-rate-limit: members, and what rateLimit takes', () => {
  type Own = ourExpress.MemoryStore
  compatible<
    Broken<Own, express.MemoryStore>,
    'previous' | 'current' | 'interval' | 'resetClient' | 'getClient' | 'clearExpired'
  >()
  compatible<Broken<ourExpress.ClientRateLimitInfo, express.ClientRateLimitInfo>>()
  const store: express.Store = new ourExpress.MemoryStore()
  assert.type(express.rateLimit({ store }), 'function')
})

test('@fastify/rate-limit: the class of stores, and what the plugin takes', () => {
  const classes: FastifyRateLimitStoreCtor[] = [ourFastify.MillraceStore, ourFastify.MillraceStore.with({})]
  compatible<Broken<ourFastify.MillraceStore, FastifyRateLimitStore>>()
  const options: Parameters<typeof fastifyRateLimit>[1] = {
    store: ourFastify.MillraceStore,
    continueExceeding: true,
  }
  for (const Store of [...classes, options.store!]) assert.type(new Store({}).incr, 'function')
})

test('@nestjs/throttler: members, and what the module takes', () => {
  type Own = ourThrottler.ThrottlerStorageService
  compatible<Broken<Own, throttler.ThrottlerStorageService>, 'storage'>()
  compatible<
    Broken<ourThrottler.ThrottlerStorageRecord, Awaited<ReturnType<throttler.ThrottlerStorage['increment']>>>
  >()
  const storage: throttler.ThrottlerStorage = new ourThrottler.ThrottlerStorageService()
  assert.ok(throttler.ThrottlerModule.forRoot({ throttlers: [], storage }))
})

test.run()
