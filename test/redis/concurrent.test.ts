// Calls that overlap: of one process, and of two processes with the same keys.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const ALGORITHMS = [
  'sliding-window',
  'fixed-window',
  'token-bucket',
  'sliding-counter',
  'sliding-log',
] as const
const WINDOWS = ['sliding-window', 'fixed-window', 'token-bucket'] as const

/** In real time: two processes with a limit of 10 an hour. */
async function scene(
  options: Partial<RedisLimiterOptions>,
  act: (one: RedisLimiter, other: RedisLimiter, client: Redis) => Promise<void>,
): Promise<void> {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const made = { client, prefix: 'test', limit: 10, window: '1h', deadline: '1m', ...options } as const
  const [one, other] = [createRedisLimiter(made), createRedisLimiter(made)]
  try {
    await Promise.all([one.ready(), other.ready()])
    await one.peek('first') // a server that does not know the script yet gets the first call twice
    await act(one, other, client)
  } finally {
    await Promise.all([one.close(), other.close()])
    client.disconnect()
    await server.stop()
  }
}

/** Until a value that is born now has another birth than those before. */
const nextMs = () => poll(async () => Date.now() > startedMs(), 'the next millisecond')
const startedMs = (() => {
  let fromMs = 0
  return () => {
    const beforeMs = fromMs
    fromMs = Date.now()
    return beforeMs
  }
})()

for (const algorithm of ALGORITHMS) {
  test(`${algorithm}: two refunds of a decision at once give it back once`, () =>
    scene({ algorithm }, async (one) => {
      const decision = await one.check('key', 5)
      await one.check('key', 5)
      const given = await Promise.all([one.refund(decision), one.refund(decision)])
      assert.equal(given, [5, 0])
      assert.not((await one.check('key', 6)).allowed)
      const reserved = await one.reserve('another', 4)
      await one.check('another', 4)
      await Promise.all([reserved.cancel(), one.refund(reserved.decision)])
      assert.is(await one.usage('another'), 4)
    }))

  test(`${algorithm}: a batch with a damaged value charges nothing`, () =>
    scene({ algorithm }, async (one, _, client) => {
      await client.set('mr:1:test:{broken}:default', 'x')
      const error = await one.checkMany(['a', 'broken', 'b'], 3).catch((reason) => reason)
      assert.is(error.code, 'ERR_MILLRACE_REDIS_VALUE')
      assert.equal([await one.usage('a'), await one.usage('b')], [0, 0])
    }))

  test(`${algorithm}: what a turn has asked is decided before the limiter is closed`, () =>
    scene({ algorithm, onOutage: 'open', limit: 1 }, async (one) => {
      const asked = [one.check('key'), one.check('key')]
      await one.close()
      const decided = await Promise.all(asked)
      assert.equal(
        decided.map(({ allowed, source }) => [allowed, source]),
        [
          [true, 'redis'],
          [false, 'redis'],
        ],
      )
    }))

  test(`${algorithm}: clearAll forgets what was asked before it`, () =>
    scene({ algorithm }, async (one) => {
      const asked = one.check('key', 3)
      await one.clearAll()
      assert.ok((await asked).allowed)
      assert.is(await one.usage('key'), 0)
    }))
}

for (const algorithm of WINDOWS) {
  test(`${algorithm}: no other process undoes clear, clearAll or a refund by key`, () =>
    scene({ algorithm }, async (one, other) => {
      const changes = [() => one.clear('key'), () => one.clearAll(), () => one.refund('key', 10)]
      for (const change of changes) {
        await other.check('key', 5)
        await nextMs()
        await change()
        await nextMs()
        await other.check('key', 1)
        await other.peek('key')
        assert.equal([await one.usage('key'), (await other.stats()).restored], [1, 0])
        await one.clear('key')
      }
    }))
}

test('a fixed window that begins with a request: lost charges count in the next one', () =>
  scene({ algorithm: 'fixed-window', align: 'first' }, async (one, other, client) => {
    await one.check('key', 5)
    await other.check('key', 5)
    await nextMs()
    await client.flushall()
    await nextMs()
    await one.check('key')
    await other.check('key')
    await poll(async () => (await one.usage('key')) === 12, 'the charges of both')
    assert.not((await one.check('key', 1)).allowed)
  }))

test('requests of one turn for a key are decided in their order, whatever limits they have', () =>
  scene({}, async (one) => {
    const decided = await Promise.all([
      one.check('key'),
      one.check('key', 1, { limit: 2 }),
      one.check('key'),
      one.check('key', 1, { limit: 3 }),
      one.check('other', 1, { limit: 1 }),
    ])
    assert.equal(
      decided.map(({ allowed, remaining }) => [allowed, remaining]),
      [
        [true, 9],
        [true, 0],
        [true, 7],
        [false, 0],
        [true, 0],
      ],
    )
  }))

test('one granule: after a block without end and a clearing, the value lasts as long as its charges', () =>
  scene({ window: '300ms', granularity: '300ms', limit: 3 }, async (one, other, client) => {
    await one.block('key', Number.POSITIVE_INFINITY)
    await one.clear('key')
    const ttl = await client.pttl('mr:1:test:{key}:default')
    assert.ok(ttl > 600 && ttl <= 901, `${ttl}`)
    assert.is((await other.peek('key')).remaining, 3)
  }))

test('a remembered refusal does not hide that a cost is above the limit', () =>
  scene({ rememberRefusals: true }, async (one) => {
    await one.check('key', 10)
    assert.ok((await one.check('key')).retryAfterMs < Number.POSITIVE_INFINITY)
    assert.is((await one.check('key', 11)).retryAfterMs, Number.POSITIVE_INFINITY)
  }))

test.run()
