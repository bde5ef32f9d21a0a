// run: full
// The parts of a key are on different nodes of a Cluster, and a Cluster may be a shard.
import { Cluster as ClusterClient } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { type Cluster, startCluster } from './cluster.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const RULE = { prefix: 'test', limit: 96, window: '1h', deadline: '10s' } as const

let cluster: Cluster
test.before(async () => {
  cluster = await startCluster()
})
test.after(() => cluster?.stop())

const clientOf = ({ nodes }: Cluster) => new ClusterClient([{ host: HOST, port: nodes[0]!.port }])
const sizesOf = ({ nodes }: Cluster): Promise<number[]> =>
  Promise.all(nodes.slice(0, 3).map(({ port }) => sendOnce(port, 'DBSIZE')))

test('a split key is on several nodes, and its limit holds', async () => {
  const client = clientOf(cluster)
  const limiter = createRedisLimiter({ ...RULE, client, split: 12 })
  try {
    await limiter.ready()
    // The client may lose its first connection to a node: then some decisions are made without it.
    let admitted = 0
    const isFull = async () => {
      const decided = await Promise.all(Array.from({ length: 300 }, () => limiter.check('hot')))
      admitted += decided.filter(({ allowed }) => allowed).length
      return decided.every(({ allowed, source }) => !allowed && source === 'redis')
    }
    await poll(isFull, 'a refusal by each part')
    assert.ok(admitted > 48 && admitted <= 96, `${admitted}`)
    assert.is(await limiter.usage('hot'), 96)
    const sizes = await sizesOf(cluster)
    assert.is(
      sizes.reduce((sum, size) => sum + size),
      12,
    )
    assert.ok(
      sizes.every((size) => size > 0),
      sizes.join(),
    )
    await limiter.clearAll()
    assert.is(await limiter.usage('hot'), 0)
    const many = await limiter.checkMany(Array.from({ length: 20 }, (_, i) => `key ${i % 10}`))
    assert.ok(many.allowed.every((allowed) => allowed === 1))
  } finally {
    await limiter.close()
    client.disconnect()
  }
})

test('a Cluster and a single server are shards of one limiter, before and after a change', () =>
  withServers(1, async ([single]) => {
    const client = clientOf(cluster)
    const own = { name: 'cluster', client }
    const limiter = createRedisLimiter({ ...RULE, prefix: 'both', shards: [own], changeWithin: '1m' })
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`)
    try {
      await limiter.ready()
      const answers = async () => {
        const peeks = await Promise.all(keys.map((key) => limiter.peek(key)))
        return peeks.every(({ source }) => source === 'redis')
      }
      await poll(answers, 'answers of all nodes')
      await limiter.checkMany(keys, 50)
      await limiter.reshard([own, { name: 'single', client: single!.client }])
      const second = await limiter.checkMany(keys, 50)
      assert.ok(second.allowed.every((allowed) => allowed === 0))
      const third = await limiter.checkMany(keys, 46, { remaining: true })
      assert.ok(third.allowed.every((allowed, i) => allowed === 1 && third.remaining![i] === 0))
      const moved: number = await sendOnce(single!.server.port, 'DBSIZE')
      assert.ok(moved > 5 && moved < 35, `${moved}`)
    } finally {
      await limiter.close()
      client.disconnect()
    }
  }))

test.run()
