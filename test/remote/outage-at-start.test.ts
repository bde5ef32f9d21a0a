// A limiter whose store can't be reached from the start says so while `ready` waits: by a warning and by an event.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import type { AsyncLimiter } from 'millrace'
import { createBackendLimiter } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter, type OutageChange, type RedisLimiterOptions } from 'millrace/redis'
import { createCluster, createSentinel } from 'redis'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { clientOf } from '../memcached/limiters.js'
import { CLIENTS } from '../redis/clients.js'
import { poll } from '../redis/poll.js'
import { freePort, HOST } from '../redis/ports.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'

interface Options {
  readonly prefix: string
  readonly limit: number
  readonly window: '1h'
  readonly onOutageChange: (change: OutageChange) => void
}
type Make = (port: number, options: Options) => AsyncLimiter

const warnings: { code?: string; message: string }[] = []
process.on('warning', (warning) => warnings.push(warning))

const onRedis =
  (
    clientAt: (port: number) => RedisLimiterOptions['client'],
    more: Partial<RedisLimiterOptions> = {},
  ): Make =>
  (port, options) =>
    createRedisLimiter({ client: clientAt(port), ...options, ...more } as RedisLimiterOptions)

const PLACES: Readonly<Record<string, Make>> = {
  ioredis: onRedis(CLIENTS.ioredis),
  'node-redis': onRedis(CLIENTS['node-redis']),
  'transactions on Redis': onRedis(CLIENTS.ioredis, { algorithm: 'sliding-log', optimistic: true }),
  'a Cluster of ioredis': onRedis(
    (port) => new Cluster([{ host: HOST, port }], { lazyConnect: true }) as RedisLimiterOptions['client'],
  ),
  'a Cluster of node-redis': onRedis(
    (port) =>
      createCluster({ rootNodes: [{ url: `redis://${HOST}:${port}` }] }) as RedisLimiterOptions['client'],
  ),
  'a Sentinel of ioredis': onRedis(
    (port) => new Redis({ sentinels: [{ host: HOST, port }], name: 'main', lazyConnect: true }),
  ),
  'a Sentinel of node-redis': onRedis(
    (port) =>
      createSentinel({
        name: 'main',
        sentinelRootNodes: [{ host: HOST, port }],
      }) as RedisLimiterOptions['client'],
  ),
  shards: (port, options) =>
    createRedisLimiter({ shards: [{ name: 'one', client: CLIENTS.ioredis(port) }], ...options }),
  'a configuration store': (port, { limit, window, ...options }) =>
    createRedisLimiter({
      client: CLIENTS.ioredis(port),
      config: memoryConfig(),
      default: { limit, window },
      ...options,
    }),
  Memcached: (port, options) => createMemcachedLimiter({ client: clientOf(port), ...options }),
  'Memcached, strict': (port, options) =>
    createMemcachedLimiter({ client: clientOf(port), strict: true, ...options }),
}

/** A limiter, and what it tells. */
function starting(name: string, make: Make, port: number) {
  const prefix = `start ${name}`.replaceAll(' ', '-').toLowerCase()
  const changes: OutageChange[] = []
  const limiter = make(port, {
    prefix,
    limit: 5,
    window: '1h',
    onOutageChange: (change) => changes.push(change),
  })
  let outcome: unknown = 'waits'
  const isReady = limiter.ready().then(
    () => {
      outcome = 'ready'
    },
    (error: unknown) => {
      outcome = error
    },
  )
  return {
    limiter,
    isReady,
    outcome: () => outcome,
    states: () => changes.map(({ state }) => state),
    cause: () => changes[0]?.cause,
    codes: async () => {
      await setImmediate()
      return warnings.filter(({ message }) => message.includes(`'${prefix}'`)).map(({ code }) => code)
    },
  }
}

async function standingStill(): Promise<{ server: Server; port: number; end(): void }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).resume())
  }).listen(0, HOST)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const end = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { server, port, end }
}

for (const [name, make] of Object.entries(PLACES)) {
  test(`${name}: nobody listens, and ready() waits with a warning and an event`, async () => {
    const { limiter, outcome, isReady, states, codes, cause } = starting(
      `${name} nobody`,
      make,
      await freePort(),
    )
    await poll(() => states().length > 0, 'the event')
    assert.equal([states(), await codes(), outcome()], [['outage'], ['MILLRACE_OUTAGE'], 'waits'])
    assert.ok(cause() instanceof Error)
    assert.is((await limiter.check('key')).source, 'outage')
    await limiter.close()
    await isReady
    assert.is((outcome() as { code?: string }).code, 'ERR_MILLRACE_CLOSED')
    assert.equal([states(), await codes()], [['outage'], ['MILLRACE_OUTAGE']], 'once')
  })

  test(`${name}: the server accepts and answers nothing, and ready() waits with a warning and an event`, async () => {
    const { port, end } = await standingStill()
    const { limiter, outcome, isReady, states, codes } = starting(`${name} still`, make, port)
    await poll(() => states().length > 0, 'the event')
    assert.equal([states(), await codes(), outcome()], [['outage'], ['MILLRACE_OUTAGE'], 'waits'])
    await limiter.close()
    await isReady
    end()
    assert.equal([states(), await codes()], [['outage'], ['MILLRACE_OUTAGE']], 'once')
  })
}

test('a backend that answers nothing: ready() rejects, with a warning and an event', async () => {
  const make: Make = (_, options) =>
    createBackendLimiter({
      values: { read: () => new Promise(() => {}), swap: async () => true },
      source: 'own',
      ...options,
    })
  const { limiter, outcome, isReady, states, codes } = starting('backend', make, 0)
  await isReady
  assert.is((outcome() as { code?: string }).code, 'ERR_MILLRACE_OUTAGE')
  assert.equal([states(), await codes()], [['outage'], ['MILLRACE_OUTAGE']])
  await limiter.close()
})

for (const [register, start, names] of [
  [redisTest, startRedis, ['ioredis', 'node-redis', 'transactions on Redis', 'shards']],
  [memcachedTest, startMemcached, ['Memcached', 'Memcached, strict']],
] as const) {
  for (const name of names) {
    register(
      `${name}: the outage of a start ends when the server comes, and a good start tells nothing`,
      async () => {
        const server = await start()
        const good = starting(`${name} good`, PLACES[name]!, server.port)
        await good.isReady
        assert.equal([good.outcome(), good.states(), await good.codes()], ['ready', [], []])
        await good.limiter.close()
        await server.kill()
        const late = starting(`${name} late`, PLACES[name]!, server.port)
        await poll(() => late.states().length > 0, 'the event')
        await server.restart()
        await late.isReady
        await poll(() => late.states().length > 1, 'the end of the outage')
        assert.equal([late.outcome(), late.states()], ['ready', ['outage', 'recovered']])
        assert.equal(await late.codes(), ['MILLRACE_OUTAGE', 'MILLRACE_RECOVERED'])
        await late.limiter.close()
        await server.kill()
        await server.stop()
      },
    )
  }
}

redisTest('a new shard that does not answer is no outage of the limiter', async () => {
  const server = await startRedis()
  const client = CLIENTS.ioredis(server.port)
  const changes: string[] = []
  const limiter = createRedisLimiter({
    shards: [{ name: 'one', client }],
    prefix: 'joining',
    limit: 5,
    window: '1h',
    onOutageChange: ({ state }) => changes.push(state),
  })
  await limiter.ready()
  const missing = { name: 'two', client: CLIENTS.ioredis(await freePort()) }
  const outcome = await limiter.reshard([{ name: 'one', client }, missing]).catch((error) => error)
  assert.is(outcome.code, 'ERR_MILLRACE_OUTAGE')
  assert.equal(changes, [])
  await limiter.close()
  await server.stop()
})

test.run()
