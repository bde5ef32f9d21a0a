// run: full
// A server that stands still accepts connections and answers nothing. Each kind does so at each moment: every call
// settles, the limiter comes back when the server goes on, and a closed limiter leaves nothing behind.
import { Cluster, Redis } from 'ioredis'
import type { AsyncLimiter } from 'millrace'
import { redisConfig } from 'millrace/config/redis'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { createCluster, createSentinel } from 'redis'
import * as assert from 'uvu/assert'
import { clientOf as memcacheOf } from '../memcached/limiters.js'
import { CLIENTS, LIBRARIES, type Library } from './clients.js'
import { startCluster } from './cluster.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { leavingNothing } from './resources.js'
import { SENTINEL_NAME, startSentinel } from './sentinel.js'
import { startMemcached, startRedis } from './servers.js'
import { memcachedTest, redisTest } from './skip.js'

interface Scene {
  /** Made anew by each call. */
  readonly limiter: () => AsyncLimiter
  /** Stands still. */
  readonly server: Server
  /** The server is asked for only when a connection is lost: this makes one be lost. */
  readonly lose?: () => Promise<void>
  /** Ends all servers. */
  readonly stop: () => unknown
}

const RULE = { limit: 1_000_000, window: '1h' } as const
const limiterBy = (client: RedisLimiterOptions['client'], options: Partial<RedisLimiterOptions> = {}) =>
  createRedisLimiter({ client, prefix: 'test', ...RULE, ...options })

async function oneServer(make: (server: Server) => AsyncLimiter): Promise<Scene> {
  const server = await startRedis()
  return { limiter: () => make(server), server, stop: () => server.kill() }
}

type Nodes = readonly { readonly host: string; readonly port: number }[]

const SENTINELS = {
  ioredis: (sentinels: Nodes) =>
    new Redis({ sentinels: [...sentinels], name: SENTINEL_NAME, lazyConnect: true }),
  'node-redis': (sentinels: Nodes) =>
    createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: [...sentinels] }),
}

async function watched(
  library: Library,
  pick: 'sentinel' | 'primary' | 'replica',
  options: Partial<RedisLimiterOptions> = {},
): Promise<Scene> {
  const scene = await startSentinel()
  const client = SENTINELS[library]([{ host: HOST, port: scene.sentinel.port }])
  const { primary } = scene
  return {
    limiter: () => limiterBy(client, options),
    server: scene[pick],
    ...(pick === 'sentinel' && { lose: () => primary.restart() }),
    stop: () => scene.stop(),
  }
}

async function clustered(make: (nodes: Nodes) => RedisLimiterOptions['client']): Promise<Scene> {
  const cluster = await startCluster()
  const nodes = cluster.nodes.map(({ port }) => ({ host: HOST, port }))
  return {
    limiter: () => limiterBy(make(nodes)),
    server: await cluster.ownerOf(await cluster.slotOf('mr:1:test:{key}:default')),
    stop: () => cluster.stop(),
  }
}

const KINDS: Readonly<Record<string, () => Promise<Scene>>> = {
  'one server, by ioredis': () => oneServer(({ port }) => limiterBy(CLIENTS.ioredis(port))),
  'one server, by node-redis': () => oneServer(({ port }) => limiterBy(CLIENTS['node-redis'](port))),
  'one server, by transactions': () =>
    oneServer(({ port }) =>
      limiterBy(CLIENTS.ioredis(port), { algorithm: 'sliding-log', limit: 1_000, optimistic: true }),
    ),
  'a Sentinel, by ioredis': () => watched('ioredis', 'sentinel'),
  'a Sentinel, by node-redis': () => watched('node-redis', 'sentinel'),
  'the primary of a Sentinel, by ioredis': () => watched('ioredis', 'primary'),
  'the primary of a Sentinel, by node-redis': () => watched('node-redis', 'primary'),
  'the replica, for durability': () => watched('ioredis', 'replica', { durability: 'replica' }),
  'a node of a Cluster, by ioredis': () =>
    clustered((nodes) => new Cluster([...nodes], { lazyConnect: true })),
  'a node of a Cluster, by node-redis': () =>
    clustered((nodes) => createCluster({ rootNodes: nodes.map((socket) => ({ socket })) })),
}

const isDecided = async (limiter: AsyncLimiter, source: string) =>
  (await limiter.check('key')).source === source
const decided = (limiter: AsyncLimiter, source: string) =>
  poll(() => isDecided(limiter, source), `a decision with source ${source}`)

/** From each on, the server stands still. */
function allMoments(test: typeof redisTest, kind: string, start: () => Promise<Scene>, source: string): void {
  const scene = (act: (scene: Scene) => Promise<void>) => async () => {
    const all = await start()
    try {
      await act(all)
    } finally {
      all.server.resume()
      await all.stop()
    }
  }

  test(
    `${kind} stands still from the start: calls settle, and it is found when it goes on`,
    scene(async ({ limiter, server }) => {
      await server.pause()
      const made = limiter()
      try {
        for (let i = 0; i < 3; i++) await made.check('key')
        server.resume()
        await decided(made, source)
        await made.ready?.()
      } finally {
        await made.close()
      }
    }),
  )

  test(
    `${kind} stands still from the start: a limiter that is closed leaves nothing`,
    scene(async ({ limiter, server }) => {
      await server.pause()
      await leavingNothing(async () => {
        const made = limiter()
        await made.check('key')
        await made.close()
      })
    }),
  )

  test(
    `${kind} stands still under way: calls settle, and it is found when it goes on`,
    scene(async ({ limiter, server, lose }) => {
      const made = limiter()
      try {
        await decided(made, source)
        await server.pause()
        await lose?.()
        for (let i = 0; i < 10; i++) await made.check('key')
        server.resume()
        await decided(made, source)
      } finally {
        await made.close()
      }
    }),
  )

  test(
    `${kind} stands still under way: a limiter that is closed leaves nothing`,
    scene(async ({ limiter, server, lose }) => {
      await leavingNothing(async () => {
        const made = limiter()
        await decided(made, source)
        await server.pause()
        await lose?.()
        await made.check('key')
        await made.close()
      })
    }),
  )
}

for (const [kind, start] of Object.entries(KINDS)) allMoments(redisTest, kind, start, 'redis')

allMoments(
  memcachedTest,
  'a Memcached',
  async () => {
    const server = await startMemcached()
    const limiter = () => createMemcachedLimiter({ client: memcacheOf(server.port), prefix: 'test', ...RULE })
    return { limiter, server, stop: () => server.kill() }
  },
  'memcached',
)

for (const library of LIBRARIES)
  redisTest(`${library}: a Sentinel that stands still for good is passed over for the next one`, async () => {
    const scene = await startSentinel()
    const frozen = await startRedis()
    await frozen.pause()
    const sentinels = [frozen, scene.sentinel].map(({ port }) => ({ host: HOST, port }))
    const limiter = limiterBy(SENTINELS[library](sentinels))
    try {
      await limiter.ready()
      await decided(limiter, 'redis')
      await scene.failover()
      await decided(limiter, 'redis')
      await leavingNothingMore(() => limiter.close())
    } finally {
      await limiter.close()
      await scene.stop()
      await frozen.kill()
    }
  })

/** After `act`, no socket is left. */
async function leavingNothingMore(act: () => Promise<void>): Promise<void> {
  await act()
  await poll(() => !process.getActiveResourcesInfo().includes('TCPSocketWrap'), 'the end of all sockets')
}

redisTest('a start that waits by ready, with no call: it resolves when the server goes on', async () => {
  const server = await startRedis()
  for (const library of ['ioredis', 'node-redis'] as const) {
    await server.pause()
    const limiter = limiterBy(CLIENTS[library](server.port))
    const ready = limiter.ready()
    // longer than the server is asked by one connection
    const startMs = performance.now()
    await poll(() => performance.now() - startMs > 1_500, 'the time')
    server.resume()
    await ready
    await limiter.close()
  }
  await server.kill()
})

redisTest(
  'a configuration store and its watch: calls settle, and the watch tells what has changed',
  async () => {
    const server = await startRedis()
    const client = new Redis(server.port, HOST, { retryStrategy: () => 20 })
    client.on('error', () => {})
    const other = new Redis(server.port, HOST)
    const store = redisConfig({ client, prefix: 'test', deadlineMs: 300, pollMs: 100 })
    const writer = redisConfig({ client: other, prefix: 'test' })
    const told: unknown[] = []
    const FAULT = 'ERR_MILLRACE_CONFIG_STORE'
    try {
      const change = () =>
        poll(async () => {
          await writer.put('a', RULE)
          return told.some((each) => each !== FAULT)
        }, 'a change')
      for (const isWatching of [false, true]) {
        await server.pause()
        if (!isWatching) store.watch(({ error, keys }) => void told.push(error?.code ?? keys ?? 'all'))
        const error = await store.get('a').catch((reason) => reason)
        assert.is(error?.code, FAULT)
        await poll(() => told.includes(FAULT), 'the fault')
        for (let changes = 0; changes < 2; changes++) {
          told.length = 0
          server.resume()
          await change()
        }
        told.length = 0
      }
      await server.pause()
      await store.close()
    } finally {
      server.resume()
      await writer.close()
      other.disconnect()
      client.disconnect()
      await server.kill()
    }
  },
)

redisTest.run()
