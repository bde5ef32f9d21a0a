// run: typescript
// `stats()` of every drop-in: the same counts as a limiter's, by what its callers have been answered.
import { createServer } from 'node:http'
import rateLimitPlugin from '@fastify/rate-limit'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import Fastify from 'fastify'
import { createLimiter, type LimiterStats, type MillraceError } from 'millrace'
import { MillraceStore as ExpressStore } from 'millrace/compat/express-rate-limit'
import { MillraceStore as FastifyStore } from 'millrace/compat/fastify-rate-limit'
import { RateLimiter, TokenBucket } from 'millrace/compat/limiter'
import { MillraceThrottlerStorage } from 'millrace/compat/nestjs-throttler'
import { type FlexibleOptions, RateLimiterMillrace } from 'millrace/compat/rate-limiter-flexible'
import { register } from 'millrace/metrics'
import { Registry } from 'prom-client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { listen, shut } from '../http/serve.js'
import { of, scrape } from '../metrics/scrape.js'

const LIMIT = 5
const WINDOW_MS = 60_000
const KEYS = ['a', 'b', 'c']
/** More than the limit, so that the sixth is refused, and what it may begin refuses the seventh. */
const HITS = 7

type Options = { algorithm?: 'sliding-window' | 'fixed-window'; nearLimit?: number; maxKeys?: number }

/** A drop-in under test. */
interface Made {
  readonly stats: () => LimiterStats
  /** Whether the caller is told that a hit is admitted. */
  readonly hit: (key: string) => Promise<boolean>
  readonly close?: () => Promise<unknown>
}

interface DropIn {
  readonly rule: string
  /** How many of the refused hits of a key are those of a blocked key. */
  readonly blocked?: number
  /** Whether it has no table, and one count for all. */
  readonly isOne?: boolean
  readonly make: (options: Options) => Made
}

const flexible =
  (
    own: Partial<FlexibleOptions>,
    prepare: (limiter: RateLimiterMillrace, key: string) => Promise<unknown> = async () => undefined,
  ) =>
  (options: Options): Made => {
    const limiter = new RateLimiterMillrace({ points: LIMIT, duration: 60, ...own, ...options })
    const prepared = new Set<string>()
    return {
      stats: () => limiter.stats(),
      async hit(key) {
        if (!prepared.has(key)) await prepare(limiter, key)
        prepared.add(key)
        return limiter.consume(key).then(
          () => true,
          () => false,
        )
      },
      close: () => limiter.close(),
    }
  }

const throttler =
  (blockDuration: number) =>
  ({ algorithm: _, ...options }: Options): Made => {
    const storage = new MillraceThrottlerStorage(options)
    return {
      stats: () => storage.stats(),
      hit: async (key) => !(await storage.increment(key, WINDOW_MS, LIMIT, blockDuration, 'short')).isBlocked,
      close: () => storage.onApplicationShutdown(),
    }
  }

const fastify =
  (ban: number) =>
  (options: Options): Made => {
    const store = new (FastifyStore.with(options))({ ban })
    const hit = (key: string) =>
      new Promise<boolean>((resolve, reject) => {
        const callback = (error: Error | null, result?: { current: number }) =>
          error ? reject(error) : resolve(result!.current <= LIMIT)
        store.incr(key, callback, WINDOW_MS, LIMIT)
      })
    return { stats: () => store.stats(), hit }
  }

/** The options of those without a table. */
const near = ({ nearLimit }: Options) => (nearLimit === undefined ? {} : { nearLimit })

const DROP_INS: Readonly<Record<string, DropIn>> = {
  'express-rate-limit': {
    rule: 'default',
    make(options) {
      const store = new ExpressStore(options)
      store.init({ windowMs: WINDOW_MS, limit: LIMIT })
      const hit = async (key: string) => (await store.increment(key)).totalHits <= LIMIT
      return { stats: () => store.stats(), hit, close: () => store.shutdown() }
    },
  },
  '@fastify/rate-limit': { rule: 'default', make: fastify(-1) },
  '@fastify/rate-limit with a ban': { rule: 'default', blocked: 1, make: fastify(1) },
  '@nestjs/throttler': { rule: 'short', make: throttler(0) },
  '@nestjs/throttler with blocks': { rule: 'short', blocked: 1, make: throttler(WINDOW_MS) },
  'rate-limiter-flexible': { rule: 'rlflx', make: flexible({}) },
  'rate-limiter-flexible with a prefix': { rule: 'login', make: flexible({ keyPrefix: 'login' }) },
  'rate-limiter-flexible with blockDuration': {
    rule: 'rlflx',
    blocked: 1,
    make: flexible({ blockDuration: 60 }),
  },
  'rate-limiter-flexible with block': {
    rule: 'rlflx',
    blocked: HITS,
    make: flexible({}, (limiter, key) => limiter.block(key, 0)),
  },
  'rate-limiter-flexible with block and delete': {
    rule: 'rlflx',
    make: flexible({}, async (limiter, key) => {
      await limiter.block(key, 60)
      await limiter.delete(key)
    }),
  },
  'limiter: RateLimiter': {
    rule: 'default',
    isOne: true,
    make(options) {
      const limiter = new RateLimiter({ tokensPerInterval: LIMIT, interval: 'day', ...near(options) })
      return { stats: () => limiter.stats(), hit: async () => limiter.tryRemoveTokens(1) }
    },
  },
  'limiter: RateLimiter at once': {
    rule: 'default',
    isOne: true,
    make(options) {
      const interval = { tokensPerInterval: LIMIT, interval: 'day', fireImmediately: true } as const
      const limiter = new RateLimiter({ ...interval, ...near(options) })
      return { stats: () => limiter.stats(), hit: async () => (await limiter.removeTokens(1)) >= 0 }
    },
  },
  'limiter: TokenBucket': {
    rule: 'default',
    isOne: true,
    make(options) {
      const bucket = new TokenBucket({
        bucketSize: LIMIT,
        tokensPerInterval: 1e-9, // what comes during the test is lost in rounding
        interval: 'day',
        ...near(options),
      })
      bucket.content = LIMIT
      return { stats: () => bucket.stats(), hit: async () => bucket.tryRemoveTokens(1) }
    },
  },
  'limiter: RateLimiter on a limiter': {
    rule: 'default',
    isOne: true,
    make(options) {
      const shared = createLimiter({ limit: LIMIT, window: '1h' })
      const limiter = new RateLimiter({ limiter: shared, ...near(options) })
      return {
        stats: () => limiter.stats(),
        hit: async () => limiter.tryRemoveTokens(1),
        close: () => shared.close(),
      }
    },
  },
}

/** How many admitted hits of a key leave it near the limit: the number that have used this share, or more. */
const nearBy = (share: number) => LIMIT + 1 - Math.ceil(LIMIT * share)

async function seen({ hit }: Made): Promise<{ admitted: number; refused: number }> {
  const counts = { admitted: 0, refused: 0 }
  for (let i = 0; i < HITS; i++) for (const key of KEYS) counts[(await hit(key)) ? 'admitted' : 'refused']++
  return counts
}

for (const [name, { rule, blocked = 0, isOne = false, make }] of Object.entries(DROP_INS)) {
  for (const algorithm of isOne
    ? (['sliding-window'] as const)
    : (['sliding-window', 'fixed-window'] as const)) {
    test(`${name}, ${algorithm}: has the counts of what its callers were answered`, async () => {
      for (const nearLimit of [undefined, 0.5]) {
        const made = make({ algorithm, ...(nearLimit !== undefined && { nearLimit }) })
        const answered = await seen(made)
        const limits = isOne ? 1 : KEYS.length
        const admits = blocked < HITS
        assert.equal(answered.admitted, admits ? limits * LIMIT : 0)
        const stats = made.stats()
        const ofBlocked = blocked * KEYS.length
        const nearOnes = admits ? limits * nearBy(nearLimit ?? 0.8) : 0
        const expected = { ...answered, shadowRefused: 0, blocked: ofBlocked, nearLimit: nearOnes }
        const { rules, ...own } = stats.own
        assert.equal(own, expected)
        assert.equal(rules, { [rule]: expected })
        assert.equal(stats.shared, { ...answered, shadowRefused: 0 })
        assert.equal(
          [stats.allowed, stats.denied, stats.shadowDenied],
          [answered.admitted, answered.refused, 0],
        )
        await made.close?.()
      }
    })
  }

  test(`${name}: has the fields of a limiter, which metrics take`, async () => {
    const limiter = createLimiter({ limit: 1, window: '1m' })
    const made = make({})
    assert.equal(Object.keys(made.stats()).toSorted(), Object.keys(limiter.stats()).toSorted())
    const registry = new Registry()
    const end = register({ dropIn: made }, registry)
    const { admitted, refused } = await seen(made)
    const found = of(await scrape(registry), 'millrace_decisions_total')
    const shown = (outcome: string) => found[`limiter=dropIn,outcome=${outcome},store=memory`]
    const ofBlocked = blocked * KEYS.length
    assert.equal(
      [shown('admitted'), shown('refused'), shown('blocked')],
      [admitted, refused - ofBlocked, ofBlocked],
    )
    await end()
    await made.close?.()
  })

  if (isOne) continue
  test(`${name}: says how full its tables are, and what they have lost, also after it was closed`, async () => {
    const made = make({ maxKeys: 10 })
    for (const key of KEYS) await made.hit(key)
    const { keys, places, bytes, evicted } = made.stats()
    assert.equal([keys, evicted], [KEYS.length, 0])
    assert.ok(places >= 10 && bytes > 0)
    for (let i = 0; i < 200; i++) await made.hit(`key ${i}`)
    const full = made.stats()
    assert.is(full.places, places)
    assert.ok(full.keys > KEYS.length && full.evicted > 0)
    if (made.close === undefined) return
    await made.close()
    const closed = made.stats()
    assert.equal([closed.keys, closed.bytes, closed.evicted], [0, 0, full.evicted])
    assert.is(closed.own.admitted, full.own.admitted)
  })

  test(`${name}: refuses a share that is none`, () => {
    for (const nearLimit of [0, -1, 1.1, Number.NaN, '0.8', null])
      assert.throws(
        () => make({ nearLimit: nearLimit as number }),
        ({ code, option }: MillraceError) => code === 'ERR_MILLRACE_INVALID_OPTION' && option === 'nearLimit',
      )
  })
}

test('what waits for tokens is told, and each of its attempts counts', async () => {
  const limiter = new RateLimiter({ tokensPerInterval: 1, interval: 50 })
  const bucket = new TokenBucket({ bucketSize: 1, tokensPerInterval: 1, interval: 50 })
  limiter.tryRemoveTokens(1)
  const waits = [limiter.removeTokens(1), limiter.removeTokens(1), bucket.removeTokens(1)]
  assert.equal([limiter.stats().waiting, bucket.stats().waiting], [2, 1])
  await Promise.all(waits)
  for (const [each, admitted] of [
    [limiter, 3],
    [bucket, 1],
  ] as const) {
    const { own, waiting } = each.stats()
    assert.equal([own.admitted, waiting], [admitted, 0])
    assert.ok(own.refused >= 1)
  }
})

test('a RateLimiter on a limiter has its own counts apart from what the limiter has decided', () => {
  const limiter = createLimiter({ limit: 3, window: '1h' })
  const [one, other] = [new RateLimiter({ limiter }), new RateLimiter({ limiter })]
  for (let i = 0; i < 4; i++) (i % 2 === 0 ? one : other).tryRemoveTokens(1)
  assert.equal(
    [one, other].map((each) => each.stats().own.admitted),
    [2, 1],
  )
  for (const each of [one, other]) {
    const { shared, keys, places } = each.stats()
    assert.equal([shared, keys], [{ admitted: 3, refused: 1, shadowRefused: 0 }, 1])
    assert.ok(places > 1)
  }
})

test('calls that are delayed are told as waiting', async () => {
  const limiter = new RateLimiterMillrace({ points: 2, duration: 0.2, execEvenly: true })
  const calls = [limiter.consume('key'), limiter.consume('key')]
  assert.is(limiter.stats().waiting, 1)
  await Promise.all(calls)
  assert.is(limiter.stats().waiting, 0)
  await limiter.close()
})

test('the middleware of express-rate-limit counts in its store', async () => {
  const store = new ExpressStore()
  const app = express()
  app.use(rateLimit({ windowMs: WINDOW_MS, limit: 2, validate: false, store }))
  app.get('/', (_, response) => void response.send('hello'))
  const server = createServer(app)
  const url = await listen(server)
  const answers = { admitted: 0, refused: 0 }
  for (let i = 0; i < 5; i++) answers[(await fetch(url)).status === 200 ? 'admitted' : 'refused']++
  const { admitted, refused } = store.stats().own
  assert.equal({ admitted, refused }, answers)
  assert.equal(answers, { admitted: 2, refused: 3 })
  await shut(server)
  await store.shutdown()
})

test('the plugin of @fastify/rate-limit counts by route, in its class of stores', async () => {
  const Store = FastifyStore.with({})
  const app = Fastify()
  await app.register(rateLimitPlugin, { max: 3, timeWindow: WINDOW_MS, store: Store })
  app.get('/', () => 'hello')
  app.post('/login', { config: { rateLimit: { max: 1, ban: 0 } } }, () => 'hello')
  app.get('/group', { config: { rateLimit: { max: 2, groupId: 'both' } } }, () => 'hello')
  const statuses: number[] = []
  const asked = [
    ['GET', '/'],
    ['POST', '/login'],
    ['GET', '/group'],
  ] as const
  for (const [method, url] of asked)
    for (let i = 0; i < 4; i++) statuses.push((await app.inject({ method, url })).statusCode)
  assert.equal(statuses, [200, 200, 200, 429, 200, 403, 403, 403, 200, 200, 429, 429])
  const { own, keys } = Store.stats()
  const none = { shadowRefused: 0, blocked: 0 }
  assert.equal(own.rules, {
    default: { ...none, admitted: 3, refused: 1, nearLimit: 1 },
    'POST /login': { ...none, admitted: 1, refused: 3, blocked: 3, nearLimit: 1 },
    both: { ...none, admitted: 2, refused: 2, nearLimit: 1 },
  })
  assert.equal([own.admitted, own.refused, own.blocked, keys], [6, 6, 3, 1])
  assert.is(FastifyStore.stats().own.rules['POST /login'], undefined, 'classes count apart')
  await app.close()
})

test.run()
