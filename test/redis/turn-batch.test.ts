// Calls of one turn of the event loop share calls of the script. Each is decided for itself, in its order.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

async function scene(
  options: Partial<RedisLimiterOptions>,
  act: (limiter: RedisLimiter, client: Redis) => Promise<void>,
): Promise<void> {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const limiter = createRedisLimiter({
    ...{ client, prefix: 'test', limit: 5, window: '1m', deadline: '1m' },
    ...options,
  } as RedisLimiterOptions)
  try {
    await limiter.ready()
    await limiter.peek('first') // the server has the script by now
    await act(limiter, client)
  } finally {
    await limiter.close()
    client.disconnect()
    await server.stop()
  }
}

async function scriptCalls(client: Redis): Promise<number> {
  const stats = await client.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)![1])
}

const rejection = (promise: Promise<unknown>): Promise<Error & { code: string }> =>
  promise.then(
    () => assert.unreachable('it must reject'),
    (error) => error,
  )

test('640 checks of one turn are ten calls, and each key has its own limit', () =>
  scene({}, async (limiter, client) => {
    const before = await scriptCalls(client)
    const all = await Promise.all(Array.from({ length: 640 }, (_, i) => limiter.check(`key ${i % 80}`)))
    assert.is((await scriptCalls(client)) - before, 10)
    for (const [i, decision] of all.entries()) {
      const earlier = Math.floor(i / 80)
      assert.equal([decision.allowed, decision.remaining], [earlier < 5, Math.max(0, 4 - earlier)])
    }
  }))

test('calls of one turn on one key are decided in their order', () =>
  scene({}, async (limiter) => {
    const [first, between, second, _, blocked] = await Promise.all([
      limiter.check('key', 2),
      limiter.peek('key'),
      limiter.check('key', 2),
      limiter.block('key', '1m'),
      limiter.check('key'),
    ])
    assert.equal([first.remaining, between.remaining, second.remaining], [3, 3, 1])
    assert.not(blocked.allowed)
    const [, usage, , after] = await Promise.all([
      limiter.check('other', 3),
      limiter.usage('other'),
      limiter.clear('other'),
      limiter.peek('other'),
    ])
    assert.equal([usage, after.remaining], [3, 5])
  }))

test('a limit of a call and a changed limit hold for their own requests of a turn', () =>
  scene({}, async (limiter) => {
    const own = [3, undefined, 3].map((limit) =>
      limiter.check('key', 1, limit === undefined ? {} : { limit }),
    )
    const changing = limiter.update('default', { limit: 8 })
    const later = limiter.check('key')
    await changing
    const limits = (await Promise.all([...own, later])).map(({ limit }) => limit)
    assert.equal(limits, [3, 5, 3, 8])
  }))

test('a value is read once, whether it is admitted or refused, and a refusal writes nothing', () =>
  scene({}, async (limiter, client) => {
    const calls = async (): Promise<number[]> => {
      const stats = await client.info('commandstats')
      return ['get', 'mget', 'set', 'setrange'].map((name) =>
        Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
      )
    }
    const during = async (act: () => Promise<unknown>): Promise<number[]> => {
      const before = await calls()
      await act()
      return (await calls()).map((count, i) => count - before[i]!)
    }
    await limiter.check('key', 5)
    assert.equal(await during(() => limiter.check('key')), [1, 0, 0, 0])
    assert.equal(await during(() => limiter.peek('key')), [1, 0, 0, 0])
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`)
    await limiter.checkMany(keys, 5)
    assert.equal(await during(() => limiter.checkMany(keys)), [0, 1, 0, 0])
    const mixed = ['key 0', 'key 1', 'key 1', 'new']
    assert.equal((await limiter.checkMany(mixed)).allowed.join(), '0,0,0,1')
    const costs = [1, 2, 1, 4]
    const among = await limiter.checkMany(['new', 'other', 'key 2', 'last'], costs, { remaining: true })
    assert.is(among.allowed.join(), '1,1,0,1')
    assert.is(among.remaining!.join(), '3,3,0,1')
  }))

test('a damaged value rejects the requests of its key alone', () =>
  scene({}, async (limiter, client) => {
    await client.set('mr:1:test:{broken}:default', 'x')
    const [good, error, alsoGood] = await Promise.all([
      limiter.check('good'),
      rejection(limiter.check('broken')),
      limiter.check('good'),
    ])
    assert.is(error.code, 'ERR_MILLRACE_REDIS_VALUE')
    assert.equal([good.remaining, alsoGood.remaining], [4, 3])
  }))

test('a batch with a damaged value rejects, and charges nothing', () =>
  scene({}, async (limiter, client) => {
    await client.set('mr:1:test:{key 70}:default', 'x')
    const keys = Array.from({ length: 150 }, (_, i) => `key ${i}`)
    const error = await rejection(limiter.checkMany(keys, 2))
    assert.is(error.code, 'ERR_MILLRACE_REDIS_VALUE')
    assert.match(error.message, 'key 70')
    for (const key of keys) if (key !== 'key 70') assert.is(await limiter.usage(key), 0, key)
  }))

test.run()
