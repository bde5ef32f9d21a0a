// run: full
// Redis's clock is set back or forward while it runs, by libfaketime.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { type FakeTime, fakeTime, isLeftOut } from '../clock/faketime.js'
import { poll } from './poll.js'
import { startRedis } from './servers.js'
import { redisTest } from './skip.js'

// Debian's valkey-server does not start under libfaketime.
const isOther = ![undefined, 'redis-server'].includes(process.env.MILLRACE_REDIS_SERVER)
const test = isLeftOut() || isOther ? Object.assign(redisTest.skip, { run: redisTest.run }) : redisTest

const HOUR_S = 3_600
const MINUTE_MS = 60_000
const LIMIT = 20
const ALGORITHMS = ['sliding-window', 'fixed-window', 'token-bucket'] as const
const KINDS: readonly [name: string, options: Partial<RedisLimiterOptions>][] = ALGORITHMS.map(
  (algorithm) => [
    algorithm,
    // A fixed window from the first request on, lest a minute of the clock ends during the test.
    algorithm === 'fixed-window' ? { algorithm, align: 'first' } : { algorithm },
  ],
)

interface Scene {
  readonly limiter: RedisLimiter
  /** Another process with the same rule. */
  readonly other: RedisLimiter
  readonly client: Redis
  /** Sets Redis's clock to so many seconds from the machine's. */
  readonly set: (seconds: number) => Promise<void>
}

async function scene(options: Partial<RedisLimiterOptions>, act: (scene: Scene) => Promise<void>) {
  const time: FakeTime = fakeTime('wall')
  // Redis's own allocator, jemalloc, reads the clock while libfaketime starts: the one of the C library does not.
  const preload = `${time.env.LD_PRELOAD} libc.so.6`
  const server = await startRedis({ env: { ...time.env, LD_PRELOAD: preload } })
  const client = new Redis(server.port, '127.0.0.1')
  const make = () =>
    createRedisLimiter({
      ...{ client, prefix: 'test', limit: LIMIT, window: MINUTE_MS, deadline: '10s' },
      ...options,
    })
  const limiter = make()
  const other = make()
  const seconds = async () => Number((await client.time())[0])
  try {
    await Promise.all([limiter.ready(), other.ready()])
    await act({
      ...{ limiter, other, client },
      async set(to) {
        const offset = async () => (await seconds()) - Date.now() / 1_000
        time.set(to)
        await poll(async () => Math.abs((await offset()) - to) < MINUTE_MS / 1_000, 'the new time of Redis')
      },
    })
  } finally {
    await Promise.all([limiter.close(), other.close()])
    client.disconnect()
    await server.stop()
    time.remove()
  }
}

/** The units that are admitted until one is refused. */
async function admitted(limiter: RedisLimiter): Promise<number> {
  let units = 0
  while ((await limiter.check('key')).allowed) units++
  return units
}

for (const [name, options] of KINDS) {
  test(`${name}: an hour back wins nothing, and nothing is won when the clock is right again`, () =>
    scene(options, async ({ limiter, client, set }) => {
      await limiter.check('key', LIMIT - 5)
      await set(-HOUR_S)
      assert.is(await limiter.usage('key'), LIMIT - 5, 'what was charged still counts')
      assert.is(await admitted(limiter), 5)
      const { allowed, retryAfterMs } = await limiter.check('key')
      assert.not(allowed)
      assert.ok(retryAfterMs > 0)
      const name = 'mr:1:test:{key}:default'
      assert.ok((await client.pttl(name)) > HOUR_S * 1_000, 'the key stays until the clock is there again')
      await set(0)
      assert.is(await limiter.usage('key'), LIMIT)
      assert.is(await admitted(limiter), 0)
      assert.ok((await client.pttl(name)) <= 2 * MINUTE_MS, 'it does not stay longer')
    }))

  test(`${name}: an hour forward ends the counts early, as the docs say`, () =>
    scene(options, async ({ limiter, client, other, set }) => {
      assert.is(await admitted(limiter), LIMIT)
      await set(HOUR_S)
      assert.is(await limiter.usage('key'), 0)
      assert.is(await admitted(other), LIMIT)
      // Back again, the key is one of the future: its counts stand still.
      await set(0)
      assert.is(await admitted(other), 0)
      assert.ok((await client.pttl('mr:1:test:{key}:default')) > 0)
    }))

  test(`${name}: after an hour forward, a process that has charged a key sends its charges again`, () =>
    scene(options, async ({ limiter, other, set }) => {
      assert.is(await admitted(limiter), LIMIT)
      await set(HOUR_S)
      await limiter.peek('key')
      await poll(async () => (await limiter.stats()).restored === 1, 'the charges')
      assert.is(await admitted(other), 0)
    }))
}

test('a block does not end earlier when the clock is set back', () =>
  scene({}, async ({ limiter, set }) => {
    await limiter.block('key', MINUTE_MS)
    await set(-HOUR_S)
    const { allowed, retryAfterMs } = await limiter.check('key')
    assert.not(allowed)
    assert.ok(retryAfterMs > MINUTE_MS)
    await set(0)
    assert.not((await limiter.check('key')).allowed)
  }))

test.run()
