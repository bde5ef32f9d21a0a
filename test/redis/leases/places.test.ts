// run: full, typescript
// Leases by each client, in a Cluster, and on shards: they are spent, and the limit holds for two processes together.
import { Redis as Valkey } from 'iovalkey'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { CLIENTS } from '../clients.js'
import { startCluster } from '../cluster.js'
import { clientOf } from '../cluster-limiter.js'
import { HOST } from '../ports.js'
import { startRedis } from '../servers.js'
import { redisTest as test } from '../skip.js'

type Place = Pick<RedisLimiterOptions, 'client' | 'shards'>

/** Starts servers, and stops them. */
const PLACES: Readonly<Record<string, () => Promise<{ place: Place; stop(): Promise<void> }>>> = {
  ...Object.fromEntries(Object.entries(CLIENTS).map(([name, clientAt]) => [name, () => onOne(clientAt)])),
  iovalkey: () => onOne((port) => new Valkey(port, HOST, { lazyConnect: true })),
  async cluster() {
    const cluster = await startCluster()
    const client = clientOf(cluster)
    return { place: { client }, stop: () => cluster.stop() }
  },
  async shards() {
    const servers = [await startRedis(), await startRedis()] as const
    const shards = servers.map(({ port }, i) => ({ name: `shard ${i}`, client: CLIENTS.ioredis(port) }))
    return { place: { shards }, stop: async () => void (await Promise.all(servers.map((one) => one.stop()))) }
  },
}

async function onOne(clientAt: (port: number) => RedisLimiterOptions['client']) {
  const server = await startRedis()
  return { place: { client: clientAt(server.port) }, stop: () => server.stop() }
}

const LIMIT = 100
const KEYS = ['first', 'second', 'third']

for (const [name, start] of Object.entries(PLACES))
  test(`${name}: units on lease are spent, and the limit holds`, async () => {
    const { place, stop } = await start()
    const made = {
      ...place,
      prefix: 'test',
      limit: LIMIT,
      window: '1h',
      mode: 'leased',
      deadline: '1m',
    } as const
    const limiters = [createRedisLimiter(made), createRedisLimiter(made)] as const
    try {
      await Promise.all(limiters.map((limiter) => limiter.ready()))
      for (const key of KEYS) {
        let admitted = 0
        for (let i = 0; i < 2 * LIMIT; i++) {
          const limiter = limiters[i % 2]!
          const decision = limiter.checkNow(key) ?? (await limiter.check(key))
          if (decision.allowed) admitted++
        }
        assert.ok(admitted <= LIMIT && admitted > 0.9 * LIMIT, `${admitted} of ${LIMIT}`)
      }
      for (const limiter of limiters) assert.ok((await limiter.stats()).leases!.spent > 0)
    } finally {
      await Promise.all(limiters.map((limiter) => limiter.close()))
      await stop()
    }
  })

test.run()
