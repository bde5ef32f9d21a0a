// run: also-full
// The sliding log and the sliding counter on Redis: what they let through, and what their values are.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { KeyNames } from '#millrace/remote/key-names.js'
import { sized } from '../size.js'
import { randomOf } from './exact.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

/** A whole multiple of all windows here, where windows of a counter begin. */
const START_MS = 1_800_000_000_000

let server: Server
let client: Redis

test.before(async () => {
  server = await startRedis()
  client = new Redis(server.port, '127.0.0.1')
})

test.after(async () => {
  client.disconnect()
  await server.stop()
})

interface Scene {
  readonly limiter: RedisLimiter
  /** Milliseconds after the start. */
  at(ms: number): void
}

/** A limiter in a test's time, on an empty server. */
async function scene(options: object, act: (scene: Scene) => Promise<void>): Promise<void> {
  await client.flushall()
  let nowMs = START_MS
  const own = { client, prefix: 'test', deadline: '1m', testTime: () => nowMs } as const
  const limiter = createRedisLimiter({ ...own, ...(options as { limit: number; window: string }) })
  try {
    await limiter.ready()
    const at = (ms: number) => {
      nowMs = START_MS + ms
    }
    await act({ limiter, at })
  } finally {
    await limiter.close()
  }
}

/** Checks a key so many times. Returns how many were admitted. */
async function admittedOf(limiter: RedisLimiter, times: number): Promise<number> {
  const keys = Array.from({ length: times }, () => 'key')
  return (await limiter.checkMany(keys)).allowed.filter(Boolean).length
}

const COUNTER = { algorithm: 'sliding-counter' } as const
const LOG = { algorithm: 'sliding-log' } as const
const MINUTE_MS = 60_000

test('10,000 in 15 minutes: a counter admits as many, and a part of them as the window goes on', () =>
  scene({ limit: 10_000, window: '15m', ...COUNTER }, async ({ limiter, at }) => {
    assert.is(await admittedOf(limiter, 10_500), 10_000)
    const refused = await limiter.check('key')
    assert.is(refused.retryAfterMs, 15 * MINUTE_MS + 90, 'one of them has left a moment after the window')
    at(refused.retryAfterMs - 1)
    assert.not((await limiter.check('key')).allowed)
    at(refused.retryAfterMs)
    assert.ok((await limiter.check('key')).allowed)
    at(20 * MINUTE_MS) // a third of the next window
    assert.is((await limiter.peek('key')).remaining, 3_332)
    at(30 * MINUTE_MS)
    assert.is((await limiter.peek('key')).remaining, 9_999)
    at(45 * MINUTE_MS)
    assert.is((await limiter.peek('key')).remaining, 10_000)
  }))

for (const algorithm of [COUNTER, LOG]) {
  test(`10 a second and 3,000 in 10 minutes: ${algorithm.algorithm} keeps both rules, all or none`, () => {
    const rules = [
      { name: 'burst', limit: 10, window: '1s', ...algorithm },
      { name: 'long', limit: 3_000, window: '10m', ...algorithm },
    ]
    return scene({ rules }, async ({ limiter, at }) => {
      for (let second = 0; second < 600; second += 2) {
        at(1_000 * second) // the second before has none, so a counter has all of its limit
        assert.is(await admittedOf(limiter, 12), 10, `${second} s`)
      }
      const left = algorithm === LOG ? 10 : 9 // of a counter, a thousandth of the second before, rounded up
      at(599_999)
      const { rule, rules: parts } = await limiter.check('key')
      assert.equal([rule, parts[0]!.remaining, parts[1]!.remaining], ['long', left, 0])
      for (let i = 0; i < 20; i++) assert.not((await limiter.check('key', 5)).allowed)
      assert.is((await limiter.peek('key')).rules[0]!.remaining, left, 'a refusal by one rule charges none')
      assert.is(await limiter.usage('key', undefined, { rule: 'long' }), 3_000)
      at(600_000)
      // The first ten have left. Of two counters the whole window before counts at this moment.
      assert.is(await admittedOf(limiter, 12), algorithm === LOG ? 10 : 0)
      at(602_000)
      assert.is(await admittedOf(limiter, 12), 10)
    })
  })
}

test('two counters let 199 of 100 through at a boundary, and a log 100', async () => {
  for (const [algorithm, most] of [
    [COUNTER, 199],
    [LOG, 100],
  ] as const) {
    await scene({ limit: 100, window: '1m', ...algorithm }, async ({ limiter, at }) => {
      at(MINUTE_MS - 1)
      const atTheEnd = await admittedOf(limiter, 200)
      at(2 * MINUTE_MS - 2) // less than a minute later
      assert.is(atTheEnd + (await admittedOf(limiter, 200)), most, algorithm.algorithm)
    })
  }
})

/** Of Poisson traffic. */
const REQUESTS = sized({ quick: 1_500, full: 6_000 })

/** The most of some times that are in one window. */
function fullest(times: readonly number[], windowMs: number): number {
  let first = 0
  return times.reduce((most, ms, i) => {
    while (times[first]! <= ms - windowMs) first++
    return Math.max(most, i + 1 - first)
  }, 0)
}

test('Poisson traffic at the limit: two counters let more than the limit through, a log does not', async () => {
  const found: number[] = []
  for (const algorithm of [COUNTER, LOG]) {
    await scene({ limit: 100, window: '1m', ...algorithm }, async ({ limiter, at }) => {
      const random = randomOf(5)
      const decided: Promise<number | undefined>[] = []
      for (let ms = 0, i = 0; i < REQUESTS; i++) {
        ms += -Math.log(1 - random()) * (MINUTE_MS / 100)
        const atMs = Math.floor(ms)
        at(atMs)
        decided.push(limiter.check('key').then(({ allowed }) => (allowed ? atMs : undefined)))
      }
      const admitted = (await Promise.all(decided)).filter((ms) => ms !== undefined)
      found.push(fullest(admitted, MINUTE_MS))
    })
  }
  console.log(`fullest minute of 100: counter ${found[0]}, log ${found[1]}`)
  assert.ok(found[0]! > 100, `${found[0]}`)
  assert.is(found[1], 100)
})

test('a counter does not count what it refuses', () =>
  scene({ limit: 100, window: '1m', ...COUNTER }, async ({ limiter, at }) => {
    await admittedOf(limiter, 500)
    at(MINUTE_MS + MINUTE_MS / 2)
    assert.is(await admittedOf(limiter, 500), 50)
  }))

test('a log has the time of each charge in microseconds of the server', async () => {
  await client.flushall()
  const limiter = createRedisLimiter({
    client,
    prefix: 'test',
    limit: 50,
    window: '1m',
    deadline: '1m',
    ...LOG,
  })
  try {
    await limiter.ready()
    const microseconds = async () => {
      const [seconds, micros] = await client.time()
      return Number(seconds) * 1e6 + Number(micros)
    }
    const before = await microseconds()
    for (let i = 0; i < 50; i++) assert.is((await limiter.check('key')).source, 'redis')
    const after = await microseconds()
    const scores = await client.zrangebyscore(nameOf(), '(0', '+inf', 'WITHSCORES')
    const times = scores.filter((_, i) => i % 2 === 1).map(Number)
    assert.is(times.length, 50)
    assert.ok(
      times.every((us) => us >= before && us <= after),
      `${times}`,
    )
    assert.ok(times.some((us) => us % 1_000 !== 0))
  } finally {
    await limiter.close()
  }
})

test('a log has no more entries than its largest limit, however many refusals count', () =>
  scene({ limit: 5, maxLimit: 20, window: '1m', countRefused: true, ...LOG }, async ({ limiter, at }) => {
    await admittedOf(limiter, 500)
    await limiter.penalize('key', 3)
    assert.is(await client.zcount(nameOf(), '(0', '+inf'), 20)
    assert.is(await limiter.usage('key'), 22, 'nineteen of one unit, and a penalty of three')
    const { retryAfterMs } = await limiter.check('key')
    assert.is(retryAfterMs, MINUTE_MS)
    at(retryAfterMs)
    assert.ok((await limiter.check('key', 5)).allowed)
  }))

const nameOf = (key = 'key'): string => new KeyNames('test', ['default']).of(key)[0]!

/** How a value of an algorithm is damaged, and what the error says. */
const DAMAGES: Readonly<
  Record<string, readonly (readonly [says: string, damage: () => Promise<unknown>])[]>
> = {
  'sliding-log': [
    ['type', () => client.set(nameOf(), 'text')],
    ['damaged', () => client.zrem(nameOf(), 's')],
    ['damaged', () => client.zadd(nameOf(), START_MS * 1_000, 'no charge')],
    ['version', () => client.zincrby(nameOf(), -65_536, 'v')],
    ['another window', () => client.zincrby(nameOf(), -1, 'v')],
  ],
  'sliding-counter': [
    ['type', () => client.rpush(nameOf(), 'a')],
    ['damaged', () => client.set(nameOf(), 'text')],
    ['damaged', () => client.append(nameOf(), 'a')],
    ['version', () => client.setrange(nameOf(), 0, '\x02')],
    ['another window', () => client.setrange(nameOf(), 1, '??')],
  ],
}

for (const [name, options] of Object.entries({
  'sliding-log': LOG,
  'sliding-log, optimistic': { ...LOG, optimistic: true },
  'sliding-counter': COUNTER,
})) {
  for (const [says, damage] of DAMAGES[options.algorithm]!) {
    test(`${name}: an error by name for a value: ${says}, by ${damage}`, () =>
      scene({ limit: 5, window: '1m', ...options }, async ({ limiter, at }) => {
        await limiter.check('key')
        if (says === 'type') await client.del(nameOf())
        await damage()
        at(MINUTE_MS) // so the log reads what has left
        const before = await client.dump(nameOf())
        const acts = [
          () => limiter.check('key'),
          () => limiter.checkMany(['other', 'key']),
          () => limiter.usage('key'),
          () => limiter.refund('key', 1),
        ]
        for (const act of acts) {
          const error = await act().catch((reason: unknown) => reason)
          const { code, value } = error as { code: string; value: string }
          assert.is(code, 'ERR_MILLRACE_REDIS_VALUE', `${error}`)
          assert.match(value, says)
        }
        assert.equal(await client.dump(nameOf()), before)
        assert.ok((await limiter.check('fine')).allowed)
      }))
  }

  test(`${name}: limiters of another window or algorithm refuse each other's values by name`, () =>
    scene({ limit: 5, window: '1m', ...options }, async ({ limiter }) => {
      await limiter.check('key')
      const others = [
        { window: '2m', ...options },
        { window: '1m' },
        { window: '1m', algorithm: 'fixed-window' },
      ]
      for (const other of others) {
        const beside = createRedisLimiter({
          ...{ client, prefix: 'test', limit: 5, deadline: '1m', testTime: () => START_MS },
          ...(other as { window: string }),
        })
        const error = await beside.check('key').catch((reason: unknown) => reason)
        assert.is((error as { code: string }).code, 'ERR_MILLRACE_REDIS_VALUE')
        await beside.close()
      }
    }))

  test(`${name}: a key expires when nothing of it counts any more`, async () => {
    await client.flushall()
    const limiter = createRedisLimiter({
      ...{ client, prefix: 'test', limit: 5, window: 60, deadline: '1m' },
      ...options,
    })
    try {
      await limiter.check('key', 3)
      assert.is(await client.dbsize(), 1)
      await poll(async () => (await client.dbsize()) === 0, 'the end of the key')
      assert.is(await limiter.usage('key'), 0)
    } finally {
      await limiter.close()
    }
  })
}

test.run()
