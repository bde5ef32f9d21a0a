// run: typescript
// Options that are missing or have other names: each function of each entry refuses them by one named error, which
// names the option that was probably meant.
import { fastify } from 'fastify'
import { attachLimiter, createLimiter, group, MillraceError, openLimiter } from 'millrace'
import { MillraceStore } from 'millrace/compat/express-rate-limit'
import { RateLimiter, TokenBucket } from 'millrace/compat/limiter'
import { RateLimiterMillrace } from 'millrace/compat/rate-limiter-flexible'
import { dynamoConfig } from 'millrace/config/dynamodb'
import { fileConfig } from 'millrace/config/file'
import { lmdbConfig } from 'millrace/config/lmdb'
import { memoryConfig } from 'millrace/config/memory'
import { mongoConfig } from 'millrace/config/mongodb'
import { redisConfig } from 'millrace/config/redis'
import { shardedConfig } from 'millrace/config/sharded'
import * as express from 'millrace/express'
import { rateLimit } from 'millrace/fastify'
import { limitedFetch } from 'millrace/fetch'
import * as hono from 'millrace/hono'
import * as node from 'millrace/http'
import * as koa from 'millrace/koa'
import { createMemcachedLimiter } from 'millrace/memcached'
import * as nest from 'millrace/nest'
import { createRedisLimiter } from 'millrace/redis'
import { limitInterceptor } from 'millrace/undici'
import * as web from 'millrace/web'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

type Make = (options?: unknown) => unknown

const rateLimits = {
  'millrace/http': node.rateLimit,
  'millrace/express': express.rateLimit,
  'millrace/koa': koa.rateLimit,
  'millrace/hono': hono.rateLimit,
  'millrace/hono, a function': (options: never) => hono.rateLimit(options, () => new Response()),
  'millrace/web': (options: never) => web.rateLimit(options, () => new Response()),
  'millrace/nest': nest.rateLimit,
  'millrace/nest, the module': (options: never) =>
    new nest.RateLimitService(options, { values: () => [] } as never),
} as unknown as Record<string, Make>

const limiters = { createLimiter, createRedisLimiter, createMemcachedLimiter } as unknown as Record<
  string,
  Make
>

const others = {
  limitedFetch: (options: never) => limitedFetch(fetch, options),
  limitInterceptor,
  dynamoConfig,
  fileConfig,
  lmdbConfig,
  mongoConfig,
  redisConfig,
  shardedConfig,
  'a policy': (options: never) => memoryConfig({ a: options }),
  'a drop-in for rate-limiter-flexible': (options: never) => new RateLimiterMillrace(options),
  'a drop-in for limiter': (options: never) => new RateLimiter(options),
  'a bucket of the drop-in for limiter': (options: never) => new TokenBucket(options),
  ipKey: (options: unknown) => node.ipKey(options === undefined ? (null as never) : (options as never)),
} as unknown as Record<string, Make>

function errorOf(make: () => unknown): MillraceError {
  try {
    make()
  } catch (error) {
    assert.ok(error instanceof MillraceError, String(error))
    return error
  }
  throw new Error('no error')
}

const isNamed = /^ERR_MILLRACE_(INVALID_OPTION|INVALID_RULE|INVALID_POLICY|CONFIG_STORE)$/

for (const [name, make] of Object.entries({ ...rateLimits, ...limiters, ...others })) {
  test(`${name} without options is refused by a named error`, () => {
    for (const options of [undefined, null, 5, 'limit']) {
      const { code, option, message } = errorOf(() => make(options))
      assert.match(code, isNamed)
      assert.ok(option !== '' && !message.includes('undefined is'), message)
    }
  })
}

const RULE = { limit: 5, window: '1m' }
/** What other rate limiters call these options. */
const FOREIGN = {
  limit: ['max', 'maxRequests', 'points', 'requests', 'tokensPerInterval', 'Limit', 'limti'],
  window: ['windowMs', 'window_ms', 'duration', 'timeWindow', 'interval', 'ttl', 'windwo'],
}
const FOREIGN_HTTP = {
  ...FOREIGN,
  key: ['keyGenerator', 'keyFn', 'getTracker', 'keys'],
  allow: ['allowList', 'whitelist', 'Allow'],
  deny: ['blacklist', 'denyList'],
  standard: ['standardHeaders', 'legacyHeaders', 'headers'],
  countIf: ['skipFailedRequests', 'requestWasSuccessful'],
  onLimited: ['onLimitReached', 'onlimited'],
  limiter: ['store'],
  trustProxy: ['proxy', 'trustProxies'],
  delay: ['delayAfter', 'delayMs'],
  statusCode: ['statuscode', 'status'],
}

function namesMeant(make: Make, others: Readonly<Record<string, readonly string[]>>, base: object): void {
  for (const [meant, names] of Object.entries(others)) {
    for (const name of names) {
      const { option, value, message } = errorOf(() => make({ ...base, [name]: 1 }))
      assert.is(value, name, message)
      assert.match(message, `(did you mean ${meant}?)`)
      assert.ok(option !== '')
    }
  }
}

for (const [name, make] of Object.entries(rateLimits)) {
  test(`${name} names the option that was meant`, () =>
    namesMeant(make, FOREIGN_HTTP, { ...RULE, key: () => 'a' }))
}

for (const [name, make] of Object.entries({ ...limiters, 'a policy': others['a policy']! })) {
  const base = { ...RULE, ...(name.startsWith('createR') && { prefix: 'a' }) }
  test(`${name} names the option that was meant`, () => namesMeant(make, FOREIGN, base))
}

test('the options of a rule, a call, a change and a route are named, too', () => {
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 10 })
  const calls: [() => unknown, string][] = [
    [() => createLimiter({ rules: [{ ...RULE, name: 'a', max: 5 } as never] }), 'limit'],
    [() => limiter.check('a', 1, { max: 5 } as never), 'limit'],
    [() => limiter.update('default', { windowMs: 5 } as never), 'window'],
    [() => node.rateLimit({ routes: { '/a': { ...RULE, max: 5 } as never } }), 'limit'],
    [() => node.rateLimit({ ...RULE, ban: { After: 5, for: 1 } as never }), 'after'],
    [() => limitedFetch(fetch, { limiter, maxpending: 5 } as never), 'maxPending'],
    [() => redisConfig({ client: {}, keyPrefix: 'a' } as never), 'prefix'],
    [() => attachLimiter(limiter.share(), { confg: 5 } as never), 'config'],
    [() => group({ limiter }).check({ limiter: 'a' }, 1, { max: 5 } as never), 'limit'],
    [() => createLimiter({ ...RULE, engine: 'pool', pool: { threads: 5 } } as never), 'maxThreads'],
    [() => createLimiter({ ...RULE, shared: { path: 'a' } } as never), 'file'],
    [() => createLimiter({ config: memoryConfig(), default: { ...RULE, max: 5 } } as never), 'limit'],
    [() => fileConfig({ file: './a.json' } as never), 'path'],
    [() => createRedisLimiter({ ...RULE, prefix: 'a', client: {}, commandTimeout: 5 } as never), 'deadline'],
    [() => new MillraceStore({ maxKey: 5 } as never), 'maxKeys'],
  ]
  for (const [make, meant] of calls) assert.match(errorOf(make).message, `(did you mean ${meant}?)`)
})

test('openLimiter and the plugin of Fastify reject by the same errors', async () => {
  const plugin = (options: object) => Promise.resolve(fastify().register(rateLimit, options as never))
  for (const open of [openLimiter as Make, plugin as Make]) {
    const rejects = async (options?: object) => {
      const error = await Promise.resolve(open(options)).then(
        () => undefined,
        (reason) => reason,
      )
      assert.instance(error, MillraceError)
      return error as MillraceError
    }
    assert.match((await rejects({ ...RULE, max: 5 })).message, '(did you mean limit?)')
    assert.match((await rejects({ ...RULE, limit: '100' })).message, 'a number: 100, without quotation marks')
    assert.match((await rejects()).code, isNamed)
  }
})

test('a name that is like none is refused without a guess', () => {
  const { message } = errorOf(() => createLimiter({ ...RULE, zebra: 1 } as never))
  assert.match(message, /^options: expected only limit, .*shared, hugePages, nearLimit, got "zebra"$/)
})

test('a string of digits as a limit is refused by an error that says to write a number', () => {
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 10 })
  const makes = [
    () => createLimiter({ ...RULE, limit: '100' as never }),
    ...Object.values(rateLimits).map((make) => () => make({ ...RULE, limit: '100', key: () => 'a' })),
    () => memoryConfig({ a: { ...RULE, limit: '100' as never } }),
    () => limiter.check('a', 1, { limit: '100' as never }),
    () => limiter.update('default', { limit: '100' as never }),
  ]
  for (const make of makes)
    assert.match(errorOf(make).message, /limit: expected a number: 100, without quotation marks/)
})

test.run()
