// run: full
// A connection that nobody has closed, but on which nothing arrives any more.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { createClient } from 'redis'
import * as assert from 'uvu/assert'
import { CLIENTS, LIBRARIES, type Library } from './clients.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

let redis: Server
test.before(async () => {
  redis = await startRedis()
})
test.after(async () => {
  await redis?.stop()
})

const OPTIONS = { prefix: 'test', limit: 1_000, window: '1h' } as const

const limiterOf = (library: Library, port: number) =>
  createRedisLimiter({ ...OPTIONS, client: CLIENTS[library](port) })

/** Connected clients that resend nothing and queue nothing. */
const OWN: Record<Library, (port: number) => { client: RedisLimiterOptions['client']; end(): void }> = {
  ioredis(port) {
    const client = new Redis(port, HOST, { enableOfflineQueue: false, autoResendUnfulfilledCommands: false })
    return { client, end: () => client.disconnect() }
  },
  'node-redis'(port) {
    const client = createClient({ url: `redis://${HOST}:${port}`, disableOfflineQueue: true })
    client.connect().catch(() => {})
    return { client: client as RedisLimiterOptions['client'], end: () => client.destroy() }
  },
}

/** Runs the same for each library at once: a silent connection takes a second to notice. */
function eachTest(name: string, act: (library: Library, proxy: TcpProxy) => Promise<void>): void {
  test(`${LIBRARIES.join(', ')}: ${name}`, async () => {
    await Promise.all(
      LIBRARIES.map(async (library) => {
        const proxy = await startProxy(redis.port)
        await act(library, proxy)
        proxy.close()
      }),
    )
  })
}

async function closed(limiter: RedisLimiter, proxy: TcpProxy): Promise<void> {
  await limiter.close()
  await poll(() => proxy.open === 0, 'the end of all connections')
}

eachTest(
  'a connection on which nothing arrives any more is replaced by one other',
  async (library, proxy) => {
    const limiter = limiterOf(library, proxy.port)
    await limiter.ready()
    await limiter.check('key')
    proxy.forgetOpen()
    assert.is((await limiter.check('key')).source, 'outage')
    await poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')
    assert.is(proxy.accepted, 2)
    await closed(limiter, proxy)
  },
)

eachTest('a connection that had no answer from its beginning is replaced', async (library, proxy) => {
  proxy.dropAll()
  const limiter = limiterOf(library, proxy.port)
  await poll(() => proxy.lost > 0, 'the greeting')
  proxy.forgetOpen()
  proxy.restore()
  await poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')
  await closed(limiter, proxy)
})

eachTest("a client of one's own is neither replaced nor closed", async (library, proxy) => {
  const { client, end } = OWN[library](proxy.port)
  const limiter = createRedisLimiter({ ...OPTIONS, client, ownConnection: false })
  await limiter.ready()
  assert.is((await limiter.check('key')).source, 'redis')
  proxy.forgetOpen()
  const startedMs = performance.now()
  await poll(async () => {
    assert.is((await limiter.check('key')).source, 'outage')
    return performance.now() - startedMs > 1_500
  }, 'more than the silence of a connection')
  await limiter.close()
  assert.equal([proxy.accepted, proxy.open], [1, 1])
  end()
})

test.run()
