// `rememberRefusals`: a process asks Redis no more for what is certainly refused.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

async function scene(
  options: Partial<RedisLimiterOptions>,
  act: (limiter: RedisLimiter, other: RedisLimiter, calls: () => Promise<number>) => Promise<void>,
): Promise<void> {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const made = { client, prefix: 'test', limit: 5, window: '1m', deadline: '1m', ...options } as const
  const limiter = createRedisLimiter({ ...made, rememberRefusals: true })
  const other = createRedisLimiter(made)
  const calls = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0)
  try {
    await Promise.all([limiter.ready(), other.ready()])
    await act(limiter, other, calls)
  } finally {
    await Promise.all([limiter.close(), other.close()])
    client.disconnect()
    await server.stop()
  }
}

test('a refusal is remembered for requests that cost as much or more', () =>
  scene({}, async (limiter, _, calls) => {
    await limiter.check('key', 4)
    const refused = await limiter.check('key', 3)
    assert.not(refused.allowed)
    const before = await calls()
    for (const cost of [3, 4, 5]) {
      const again = await limiter.check('key', cost)
      assert.equal([again.allowed, again.source, again.remaining], [false, 'redis', 1])
      assert.ok(again.retryAfterMs > 0 && again.retryAfterMs <= refused.retryAfterMs)
    }
    assert.not((await limiter.peek('key', 3)).allowed)
    assert.is(await calls(), before)
    assert.ok((await limiter.check('key', 1)).allowed, 'a smaller cost is asked')
    assert.ok((await limiter.check('another')).allowed)
    assert.is(await calls(), before + 2)
    assert.is((await limiter.stats()).denied, 4)
  }))

test("it is forgotten by a change of this process, and another process's refund is seen late", () =>
  scene({}, async (limiter, other) => {
    await limiter.check('key', 5)
    assert.not((await limiter.check('key')).allowed)
    await other.refund('key', 5)
    assert.ok((await other.peek('key')).allowed)
    assert.not((await limiter.check('key')).allowed)
    await limiter.clear('key')
    assert.ok((await limiter.check('key')).allowed)
  }))

test('it ends after a second: what another process has changed is seen', () =>
  scene({}, async (limiter, other) => {
    await limiter.check('key', 5)
    assert.not((await limiter.check('key')).allowed)
    await other.clear('key')
    await poll(async () => (await limiter.peek('key')).allowed, 'the end of the memory')
  }))

test('it ends when its retryAfterMs is over', () =>
  scene({ window: '300ms', granularity: '10ms' }, async (limiter, _, calls) => {
    await limiter.check('key', 5)
    assert.not((await limiter.check('key')).allowed)
    const before = await calls()
    await poll(async () => (await limiter.peek('key')).allowed, 'the end of the refusal')
    assert.ok(
      (await calls()) - before <= 2,
      'it is asked once, or twice if the clocks differ by a millisecond',
    )
  }))

test('without the option each request is asked', () =>
  scene({}, async (_, other, calls) => {
    await other.check('key', 5)
    const before = await calls()
    for (let i = 0; i < 3; i++) assert.not((await other.check('key')).allowed)
    assert.is(await calls(), before + 3)
  }))

test.run()
