// `durability: 'replica'`: a decision waits until a replica has its charge.
import { Cluster, Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import { createClient } from 'redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const CLIENTS = {
  ioredis: ({ port }: Server) => new Redis(port, HOST, { lazyConnect: true }),
  'node-redis': ({ port }: Server) => createClient({ url: `redis://${HOST}:${port}` }),
} as const

const OPTIMISTIC = { algorithm: 'sliding-log', optimistic: true } as const

for (const [name, connect, decided] of [
  ['ioredis', CLIENTS.ioredis, {}],
  ['node-redis', CLIENTS['node-redis'], {}],
  ['ioredis, optimistic', CLIENTS.ioredis, OPTIMISTIC],
] as const) {
  test(`${name}: each decision is on the replica when it resolves; without a replica it is an outage`, async () => {
    const primary = await startRedis()
    const replica = await startRedis({ args: ['--replicaof', HOST, String(primary.port)] })
    const client = connect(primary)
    const options = { client, prefix: 'test', limit: 1_000, window: '1h', ...decided } as const
    const limiter = createRedisLimiter({ ...options, durability: 'replica', deadline: '2s' })
    try {
      await limiter.ready()
      await poll(
        async () => /state=online/.test(await sendOnce(primary.port, 'INFO', 'replication')),
        'the replica',
      )
      for (let i = 0; i < 20; i++) {
        const decided = await Promise.all(Array.from({ length: i }, () => limiter.check(`key ${i}`)))
        assert.ok(decided.every(({ source }) => source === 'redis'))
        assert.is(await sendOnce(replica.port, 'EXISTS', `mr:1:test:{key ${i}}:default`), i > 0 ? 1 : 0)
      }
      await replica.pause()
      const { allowed, source } = await limiter.check('key')
      assert.equal([allowed, source], [false, 'outage'])
      replica.resume()
      await poll(async () => (await limiter.check('key')).source === 'redis', 'a decision by Redis')
      assert.is(await limiter.usage('key'), 2, 'the charge stays: less is admitted, never more')
    } finally {
      await limiter.close()
      if (client instanceof Redis) client.disconnect()
      await replica.stop()
      await primary.stop()
    }
  })
}

test('bad input: another durability, and a Cluster', async () => {
  const cluster = new Cluster([{ host: HOST, port: 1 }], { lazyConnect: true })
  const rule = { prefix: 'test', limit: 1, window: '1h' } as const
  for (const [client, durability] of [
    [new Redis(1, HOST, { lazyConnect: true }), 'both'],
    [cluster, 'replica'],
  ] as const) {
    try {
      createRedisLimiter({ ...rule, client, durability: durability as 'replica' })
      assert.unreachable()
    } catch (error) {
      const { code, option, value } = error as { code: string; option: string; value: unknown }
      assert.equal([code, option, value], ['ERR_MILLRACE_INVALID_OPTION', 'durability', durability])
    }
  }
})

test.run()
