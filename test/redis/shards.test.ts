// Limiters whose keys are spread over several independent servers.
import { Cluster, Redis } from 'ioredis'
import {
  createRedisLimiter,
  type RedisLimiter,
  type RedisLimiterOptions,
  type RedisShard,
} from 'millrace/redis'
import { createClient } from 'redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { startRedis } from './servers.js'
import { keysThat, type ShardServer, withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const RULE = { prefix: 'test', limit: 4, window: '1h', deadline: '1m' } as const

/** Tests with servers, and with a limiter of 4 an hour over all of them. */
function shardsTest(
  name: string,
  count: number,
  options: Partial<RedisLimiterOptions>,
  act: (limiter: RedisLimiter, servers: readonly ShardServer[]) => Promise<void>,
): void {
  test(name, () =>
    withServers(count, async (servers) => {
      const limiter = createRedisLimiter({ ...RULE, shards: servers.map(named), ...options })
      try {
        await limiter.ready()
        await act(limiter, servers)
      } finally {
        await limiter.close()
      }
    }),
  )
}

const named = ({ name, client }: ShardServer): RedisShard => ({ name, client })
const over = (servers: readonly ShardServer[]) =>
  new Rendezvous(servers.map((server) => [server.name, server] as const))
const sizeOf = ({ server }: ShardServer): Promise<number> => sendOnce(server.port, 'DBSIZE')

shardsTest(
  'each key is on the server that rendezvous hashing gives it, and only there',
  3,
  {},
  async (limiter, servers) => {
    const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`)
    const odd = ['{a}', '%', 'é', '\ud800', 'x'.repeat(100)]
    await limiter.checkMany([...keys, ...odd])
    for (const key of keys) {
      for (const { server, name } of servers) {
        const exists = await sendOnce(server.port, 'EXISTS', `mr:1:test:{${key}}:default`)
        assert.is(exists, over(servers).find(key).name === name ? 1 : 0)
      }
    }
    const sizes = await Promise.all(servers.map(sizeOf))
    assert.is(
      sizes.reduce((sum, size) => sum + size),
      keys.length + odd.length,
    )
    assert.ok(sizes.every((size) => size > 0))
  },
)

shardsTest('all methods work on each server', 2, {}, async (limiter, servers) => {
  for (const { name } of servers) {
    const [key] = keysThat((each) => over(servers).find(each).name === name) as [string]
    const first = await limiter.check(key, 2)
    assert.equal([first.allowed, first.remaining, first.limit, first.source], [true, 2, 4, 'redis'])
    assert.is((await limiter.peek(key)).remaining, 2)
    assert.is(await limiter.usage(key), 2)
    const reservation = await limiter.reserve(key, 2)
    assert.is(await reservation.commit(1), -1)
    assert.is((await limiter.check(key, 2)).allowed, false)
    assert.is(await limiter.refund(first), 2)
    assert.is(await limiter.refund(first), 0)
    await limiter.penalize(key, 2)
    assert.is(await limiter.usage(key), 3)
    assert.is(await limiter.refund(key, 1), 1)
    await limiter.block(key, '1m')
    assert.is((await limiter.check(key)).allowed, false)
    assert.is(await limiter.unblock(key), true)
    assert.is((await limiter.wait(key)).remaining, 1)
    await limiter.clear(key)
    assert.is(await limiter.usage(key), 0)
    await limiter.update('default', { limit: 6 })
    assert.is((await limiter.check(key, 6)).allowed, true)
    await limiter.update('default', { limit: 4 })
  }
})

shardsTest('checkMany decides in order, with one call for each server', 3, {}, async (limiter, servers) => {
  const keys = Array.from({ length: 24 }, (_, i) => `key ${i % 4}`)
  const calls = () =>
    Promise.all(
      servers.map(async ({ server }) => {
        const info: string = await sendOnce(server.port, 'INFO', 'commandstats')
        return [...info.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
          (sum, [, n]) => sum + Number(n),
          0,
        )
      }),
    )
  await Promise.all(keysThat(() => true, 40).map((key) => limiter.peek(`warm ${key}`)))
  const before = await calls()
  const decided = await limiter.checkMany(keys, 1, { remaining: true })
  const after = await calls()
  assert.equal(
    [...decided.allowed],
    keys.map((_, i) => (i < 16 ? 1 : 0)),
  )
  assert.equal(
    [...decided.remaining!.slice(0, 16)],
    keys.slice(0, 16).map((_, i) => 3 - Math.floor(i / 4)),
  )
  assert.ok(
    after.every((count, i) => count - before[i]! <= 1),
    `${before} ${after}`,
  )
})

shardsTest('clearAll forgets the keys of all servers', 3, {}, async (limiter) => {
  const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`)
  await limiter.checkMany(keys, 4)
  await limiter.clearAll()
  const decided = await limiter.checkMany(keys, 4)
  assert.ok(decided.allowed.every((allowed) => allowed === 1))
})

shardsTest(
  'a dead server: its keys are in an outage, the keys of others are not',
  3,
  { deadline: 1_000 },
  async (limiter, servers) => {
    const dead = servers[1]!
    const own = keysThat((key) => over(servers).find(key) === dead, 3)
    const others = keysThat((key) => over(servers).find(key) !== dead, 6)
    await dead.server.kill()
    const isOpen = async () => {
      await limiter.check(own[0]!)
      return (await limiter.stats()).shards![1]!.breaker === 'open'
    }
    await poll(isOpen, 'an open breaker')
    for (const key of own) {
      const { allowed, source } = await limiter.check(key)
      assert.equal([allowed, source], [false, 'outage'])
      const error = await limiter.penalize(key, 1).catch((reason) => reason)
      assert.is(error.code, 'ERR_MILLRACE_OUTAGE')
    }
    const decided = await limiter.checkMany([...own, ...others])
    assert.equal([...decided.allowed], [0, 0, 0, 1, 1, 1, 1, 1, 1])
    for (const key of others) assert.is((await limiter.check(key)).source, 'redis')
    const { shards } = await limiter.stats()
    assert.equal(
      shards!.map(({ name, breaker, leaving }) => [name, breaker, leaving]),
      [
        ['a', 'closed', false],
        ['b', 'open', false],
        ['c', 'closed', false],
      ],
    )
    await dead.server.restart()
    await poll(async () => (await limiter.check(own[1]!)).source === 'redis', 'the server is back')
  },
)

shardsTest(
  'local: a dead server is told afterwards what was admitted, the others at once',
  2,
  { onOutage: 'local', nodes: 2, limit: 8, deadline: 1_000 },
  async (limiter, servers) => {
    const [dead, other] = servers as [ShardServer, ShardServer]
    const [own] = keysThat((key) => over(servers).find(key) === dead) as [string]
    const [alive] = keysThat((key) => over(servers).find(key) === other) as [string]
    await dead.server.kill()
    const decided = []
    for (let i = 0; i < 10; i++) decided.push(await limiter.check(own))
    assert.ok(decided.every(({ source }) => source === 'local'))
    assert.is(decided.filter(({ allowed }) => allowed).length, 4)
    for (let i = 0; i < 8; i++) assert.is((await limiter.check(alive)).source, 'redis')
    await dead.server.restart()
    await poll(async () => (await limiter.peek(own)).source === 'redis', 'the server is back')
    await poll(async () => (await limiter.usage(own)) === 4, 'the report')
    assert.is(await limiter.usage(alive), 8)
  },
)

shardsTest(
  'remembered refusals end nothing on another server',
  2,
  { rememberRefusals: true },
  async (limiter, servers) => {
    for (const { name } of servers) {
      const [key] = keysThat((each) => over(servers).find(each).name === name) as [string]
      assert.is((await limiter.check(key, 4)).allowed, true)
      assert.is((await limiter.check(key)).allowed, false)
      assert.is((await limiter.check(key)).allowed, false)
      await limiter.clear(key)
      assert.is((await limiter.check(key)).allowed, true)
    }
  },
)

test("durability 'replica': each server waits for a replica of its own", () =>
  withServers(2, async (servers) => {
    const [first] = servers as [ShardServer]
    const replica = await startRedis({ args: ['--replicaof', HOST, String(first.server.port)] })
    const limiter = createRedisLimiter({
      ...RULE,
      deadline: 200,
      shards: servers.map(named),
      durability: 'replica',
    })
    try {
      await limiter.ready()
      const isOnline = async () =>
        /state=online/.test(await sendOnce(first.server.port, 'INFO', 'replication'))
      await poll(isOnline, 'the replica')
      for (const server of servers) {
        const [key] = keysThat((each) => over(servers).find(each) === server) as [string]
        const isFirst = server === first
        if (isFirst) await poll(async () => (await limiter.check(key)).source === 'redis', 'a decision')
        else assert.is((await limiter.check(key)).source, 'outage')
      }
    } finally {
      await limiter.close()
      await replica.stop()
    }
  }))

test('clients of node-redis are shards, too', () =>
  withServers(2, async (servers) => {
    const shards = servers.map(({ server }) => createClient({ url: `redis://${HOST}:${server.port}` }))
    const limiter = createRedisLimiter({ ...RULE, shards })
    try {
      await limiter.ready()
      const names = (await limiter.stats()).shards!.map(({ name }) => name)
      assert.equal(
        names,
        servers.map(({ server }) => `${HOST}:${server.port}`),
      )
      for (const key of keysThat(() => true, 40)) assert.is((await limiter.check(key)).source, 'redis')
      assert.ok((await Promise.all(servers.map(sizeOf))).every((size) => size > 0))
    } finally {
      await limiter.close()
    }
  }))

const idle = (options: object = {}) => new Redis(1, HOST, { lazyConnect: true, ...options })
const cluster = new Cluster([{ host: HOST, port: 1 }], { lazyConnect: true })

for (const [options, option] of [
  [{ shards: [] }, 'shards'],
  [{ shards: idle() }, 'shards'],
  [{ shards: [idle(), 7] }, 'shards[1]'],
  [{ shards: [idle(), {}] }, 'shards[1].client'],
  [{ shards: [idle(), idle()] }, 'shards[1].name'],
  [
    {
      shards: [
        { name: 'a', client: idle() },
        { name: 'a', client: idle({ port: 2 }) },
      ],
    },
    'shards[1].name',
  ],
  [{ shards: [{ name: '', client: idle() }] }, 'shards[0].name'],
  [{ shards: [{ name: 'a', client: {} }] }, 'shards[0].client'],
  [{ shards: [{ name: 'a', client: idle(), weight: 2 }] }, 'shards[0].weight'],
  [{ shards: [cluster] }, 'shards[0]'],
  [{ shards: [idle({ path: '/tmp/redis.sock' })] }, 'shards[0]'],
  [{ shards: [createClient({ socket: { path: '/tmp/redis.sock', tls: false } })] }, 'shards[0]'],
  [{ shards: [idle()], client: idle() }, 'client'],
  [{ shards: [idle()], previousShards: [] }, 'previousShards'],
  [{ shards: [idle()], changeWithin: 0 }, 'changeWithin'],
  [{ shards: [idle()], changeWithin: 'soon' }, 'changeWithin'],
  [{ shards: [idle()], ownConnection: false }, 'client.options.enableOfflineQueue'],
  [{ client: idle(), previousShards: [idle()] }, 'previousShards'],
  [{ client: idle(), changeWithin: '1m' }, 'changeWithin'],
] as const) {
  any(`refused by name: ${option}: ${Object.keys(options).join(', ')}`, () => {
    try {
      createRedisLimiter({ ...RULE, ...options } as never)
      assert.unreachable()
    } catch (error) {
      const { code, option: named } = error as { code: string; option: string }
      assert.match(code, /^ERR_MILLRACE_INVALID_(OPTION|DURATION)$/)
      assert.is(named, option)
    }
  })
}

test.run()
