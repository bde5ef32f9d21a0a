// What a process tells Redis after an outage in which it has decided alone.
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { CLIENTS } from './clients.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

/** The beginning of a minute. */
const START_MS = 1_800_000_000_000

interface Scene {
  readonly server: Server
  readonly limiter: RedisLimiter
  /** In a test's time. */
  readonly advance: (ms: number) => void
  /** Decides alone. */
  readonly local: (cost: number) => Promise<boolean>
  /** Starts the server again, empty, and waits until the process has told it what it owes. */
  readonly recover: () => Promise<void>
}

/** Tests with a limiter of 20 a minute, of which the process has a half. */
async function scene(options: Partial<RedisLimiterOptions>, act: (scene: Scene) => Promise<void>) {
  const server = await startRedis()
  let nowMs = START_MS
  const limiter = createRedisLimiter({
    ...{ client: CLIENTS.ioredis(server.port), prefix: 'test', limit: 20, window: '1m' },
    ...{ onOutage: 'local', nodes: 2, deadline: '250ms', testTime: () => nowMs },
    ...options,
  })
  const marker = 'charged last'
  try {
    await limiter.ready()
    await act({
      ...{ server, limiter },
      advance(ms) {
        nowMs += ms
      },
      async local(cost) {
        const { allowed, source } = await limiter.check('key', cost)
        assert.is(source, 'local')
        return allowed
      },
      async recover() {
        assert.is((await limiter.check(marker)).source, 'local')
        await server.restart()
        await poll(async () => (await limiter.peek('other')).source === 'redis', 'Redis')
        // Keys are reported in the order of their first charge.
        await poll(async () => (await limiter.usage(marker)) > 0, 'the report')
      },
    })
  } finally {
    await limiter.close()
    await server.stop()
  }
}

test('units are reported with their ages, those of a tenth of a second together', () =>
  scene({}, async ({ server, limiter, advance, local, recover }) => {
    await server.kill()
    assert.ok(await local(3))
    advance(99)
    assert.ok(await local(1))
    advance(19_901)
    assert.ok(await local(2))
    advance(10_000)
    await recover()
    const used = (ms: number) => limiter.usage('key', ms)
    assert.equal(
      [await used(9_000), await used(11_000), await used(29_000), await used(60_000)],
      [0, 2, 2, 6],
    )
    advance(31_000) // a window and a granule after the first units
    assert.is(await limiter.usage('key'), 2)
    advance(20_000)
    assert.is(await limiter.usage('key'), 0)
  }))

test('an outage begins with what Redis has admitted, and the share holds in it', () =>
  scene({}, async ({ server, limiter, advance, local, recover }) => {
    await limiter.check('key', 4)
    await server.kill()
    advance(30_000)
    assert.not(await local(7))
    assert.ok(await local(6))
    assert.not(await local(1))
    advance(31_000) // the first four have left
    assert.ok(await local(4))
    assert.not(await local(1))
    advance(1_000)
    await recover()
    assert.is(await limiter.usage('key'), 10)
  }))

test('units that have left the window are not reported', () =>
  scene({}, async ({ server, limiter, advance, local, recover }) => {
    await server.kill()
    assert.ok(await local(10))
    advance(61_000)
    assert.ok(await local(5))
    await recover()
    assert.is(await limiter.usage('key'), 5)
  }))

test('what is reported may take a key over its limit, and no more is admitted then', () =>
  scene({}, async ({ server, limiter, advance, local }) => {
    const other = createRedisLimiter({
      ...{ client: CLIENTS.ioredis(server.port), prefix: 'test', limit: 20, window: '1m' },
      ...{ deadline: '1m', testTime: () => START_MS + 1_000 },
    })
    await other.check('key', 18)
    await server.pause()
    assert.ok(await local(10))
    advance(1_000)
    server.resume()
    await poll(async () => (await limiter.peek('other')).source === 'redis', 'Redis')
    // The call that had no reply in time is charged, too.
    await poll(async () => (await limiter.usage('key')) >= 28, 'the report')
    assert.not((await other.check('key')).allowed)
    await other.close()
  }))

test('fixed-window: units of the window before are not reported into this one', () =>
  scene({ algorithm: 'fixed-window' }, async ({ server, limiter, advance, local, recover }) => {
    await server.kill()
    advance(50_000)
    assert.ok(await local(7))
    advance(15_000)
    assert.ok(await local(2))
    await recover()
    assert.is(await limiter.usage('key'), 2)
  }))

test('token-bucket: reported units count as if they were charged now', () =>
  scene({ algorithm: 'token-bucket' }, async ({ server, limiter, advance, local, recover }) => {
    await server.kill()
    assert.ok(await local(6))
    advance(1_000)
    await recover()
    assert.is(await limiter.usage('key'), 6)
  }))

test.run()
