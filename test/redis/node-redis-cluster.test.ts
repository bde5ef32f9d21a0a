// run: full
// A limiter with `createCluster()` of node-redis: every call settles, and none counts twice.
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import { createCluster } from 'redis'
import * as assert from 'uvu/assert'
import { slotOf } from '#millrace/redis/clients/slots.js'
import { type Cluster, startCluster } from './cluster.js'
import { namesOf, PREFIX } from './cluster-limiter.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { leavingNothing } from './resources.js'
import { redisTest as test } from './skip.js'

let cluster: Cluster
test.before(async () => {
  cluster = await startCluster()
})
test.after(async () => {
  await cluster?.stop()
})

const limiterOn = () =>
  createRedisLimiter({
    client: createCluster({
      rootNodes: cluster.nodes.map(({ port }) => ({ url: `redis://${HOST}:${port}` })),
    }),
    prefix: PREFIX,
    limit: 1_000,
    window: '1h',
    deadline: '1m',
  })

async function use(act: (limiter: RedisLimiter) => Promise<void>): Promise<void> {
  const limiter = limiterOn()
  try {
    await limiter.ready()
    await act(limiter)
  } finally {
    await limiter.close()
  }
}

const keysFrom = (name: string) => Array.from({ length: 60 }, (_, i) => `${name} ${i}`)

async function chargeAll(limiter: RedisLimiter, keys: readonly string[]): Promise<void> {
  for (const { source, allowed } of await Promise.all(keys.map((key) => limiter.check(key, 2))))
    assert.equal([source, allowed], ['redis', true])
}

async function usedAre(limiter: RedisLimiter, keys: readonly string[], units: number): Promise<void> {
  for (const used of await Promise.all(keys.map((key) => limiter.usage(key)))) assert.is(used, units)
}

test('keys of all nodes are decided, from the first call on, and cleared', () =>
  use(async (limiter) => {
    const keys = keysFrom('all')
    await chargeAll(limiter, keys)
    const batch = await limiter.checkMany(keys)
    assert.ok(batch.allowed.every((allowed) => allowed === 1))
    await usedAre(limiter, keys, 3)
    await limiter.clearAll()
    await usedAre(limiter, keys, 0)
  }))

test('a slot that moves, and has moved: its calls follow, and count once', () =>
  use(async (limiter) => {
    const key = 'moves'
    const name = namesOf(key)[0]!
    await chargeAll(limiter, [key])
    const from = await cluster.ownerOf(slotOf(name))
    const owners = await Promise.all([0, 8_000, 16_000].map((slot) => cluster.ownerOf(slot)))
    const to = owners.find((node) => node !== from)!
    const migration = await cluster.migrate(slotOf(name), to, [name])
    await chargeAll(limiter, [key]) // ASK
    await migration.finish()
    await chargeAll(limiter, [key]) // MOVED
    await chargeAll(limiter, [key])
    await usedAre(limiter, [key], 8)
  }))

test('a planned failover, and the death of a primary: the replicas decide', () =>
  use(async (limiter) => {
    const keys = keysFrom('failover')
    await chargeAll(limiter, keys)
    const owner = await cluster.ownerOf(0)
    const [replica] = await cluster.replicasOf(owner)
    await cluster.promote(replica!)
    await chargeAll(limiter, keys)
    await usedAre(limiter, keys, 4)
    await cluster.failover(await cluster.ownerOf(8_000))
    await poll(async () => {
      const decided = await Promise.all(keys.map((key) => limiter.peek(key)))
      return decided.every(({ source }) => source === 'redis')
    }, 'decisions by the replica')
  }))

test('a closed limiter leaves nothing', () =>
  leavingNothing(async () => {
    await use(async (limiter) => chargeAll(limiter, keysFrom('closed')))
    await limiterOn().close()
  }))

test('the client of the caller is refused by name where it would be used itself', () => {
  const client = createCluster({ rootNodes: [{ url: `redis://${HOST}:1` }] })
  const act = () => createRedisLimiter({ client, prefix: 'x', limit: 1, window: '1s', ownConnection: false })
  assert.throws(act, ({ code, option }: { code: string; option: string }) => {
    return code === 'ERR_MILLRACE_INVALID_OPTION' && option === 'ownConnection'
  })
})

test('a root node whose url is none is refused by name, without the password in it', () => {
  const client = createCluster({ rootNodes: [{ url: 'redis://:secret@127.0.0.1:undefined' }] })
  const act = () => createRedisLimiter({ client, prefix: 'x', limit: 1, window: '1s' })
  assert.throws(act, ({ code, option, message }: { code: string; option: string; message: string }) => {
    return code === 'ERR_MILLRACE_INVALID_OPTION' && option === 'client' && !message.includes('secret')
  })
})

test.run()
