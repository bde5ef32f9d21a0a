// run: full
// A limiter on a Cluster and behind a Sentinel by each version of the client libraries that has them.
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { slotOf } from '#millrace/redis/clients/slots.js'
import { startCluster } from './cluster.js'
import { keysWhere, namesOf, PREFIX } from './cluster-limiter.js'
import { poll } from './poll.js'
import { leavingNothing } from './resources.js'
import { SENTINEL_NAME, startSentinel } from './sentinel.js'
import { redisTest as test } from './skip.js'
import { type Clients, VERSIONS } from './versions.js'
import { sendOnce } from './wire.js'

type Client = RedisLimiterOptions['client']

const limiterOf = (client: Client, options: Partial<RedisLimiterOptions> = {}) =>
  createRedisLimiter({ client, prefix: PREFIX, limit: 1_000_000, window: '1h', ...options })

const decided = (limiter: RedisLimiter, key = 'any') =>
  poll(async () => (await limiter.peek(key)).source === 'redis', 'a decision of Redis')

/** The limiters of all versions; what node-redis 5 can't do is refused by name. */
function limitersOf(make: (clients: Clients) => Client, options?: object): RedisLimiter[] {
  return VERSIONS.flatMap((clients) => {
    try {
      return limiterOf(make(clients), options)
    } catch (error) {
      const { code, option } = error as { code?: unknown; option?: unknown }
      const { library, version } = clients
      assert.equal(
        [library, version[0], code, option],
        ['redis', '5', 'ERR_MILLRACE_INVALID_OPTION', 'client'],
      )
      return []
    }
  })
}

test('a Cluster: keys of all nodes, a slot that moves, and the death of a primary', async () => {
  const cluster = await startCluster()
  try {
    await leavingNothing(async () => {
      const ports = cluster.nodes.map(({ port }) => port)
      const limiters = limitersOf((clients) => clients.cluster(ports), { deadline: '1m' })
      try {
        await Promise.all(limiters.map((limiter) => limiter.ready()))
        const keys = await keysWhere(() => true, 30)
        const charge = async (asked = keys) => {
          const decisions = limiters.map((limiter) => asked.map((key) => limiter.check(key)))
          for (const { source } of await Promise.all(decisions.flat())) assert.is(source, 'redis')
        }
        const usedAre = async (units: number, asked = keys) => {
          for (const limiter of limiters)
            for (const key of asked) assert.is(await limiter.usage(key), units * limiters.length)
        }
        await charge()
        await usedAre(1)
        const [name] = namesOf('moves')
        await charge(['moves'])
        const owners = await Promise.all([0, 8_000, 16_000].map((slot) => cluster.ownerOf(slot)))
        const from = await cluster.ownerOf(slotOf(name!))
        const to = owners.find((owner) => owner !== from)!
        const migration = await cluster.migrate(slotOf(name!), to, [name!])
        await charge(['moves']) // ASK
        await migration.finish()
        await charge(['moves']) // MOVED
        await charge(['moves'])
        await usedAre(4, ['moves'])
        await cluster.failover(await cluster.ownerOf(8_000))
        await Promise.all(limiters.flatMap((limiter) => keys.map((key) => decided(limiter, key))))
        await charge()
      } finally {
        await Promise.all(limiters.map((limiter) => limiter.close()))
      }
    })
  } finally {
    await cluster.stop()
  }
})

for (const harm of ['stands still', 'is demoted'] as const)
  test(`a Sentinel: after a primary that ${harm}, the promoted replica decides`, async () => {
    const watched = await startSentinel()
    try {
      await leavingNothing(async () => {
        const { port } = watched.sentinel
        const limiters = limitersOf((clients) => clients.sentinel(port, SENTINEL_NAME))
        try {
          await Promise.all(limiters.map((limiter) => limiter.ready()))
          await Promise.all(limiters.map((limiter) => decided(limiter)))
          const { primary } = watched
          await watched.failover(async () => {
            if (harm === 'stands still') primary.pause()
            else await sendOnce(port, 'SENTINEL', 'FAILOVER', SENTINEL_NAME)
          })
          for (const [i, limiter] of limiters.entries())
            await poll(async () => {
              await limiter.check(`by ${i}`)
              const names: string[] = await sendOnce(watched.primary.port, 'KEYS', `*by ${i}*`)
              return names.length > 0
            }, `a charge on the promoted replica by limiter ${i}`)
          primary.resume()
        } finally {
          await Promise.all(limiters.map((limiter) => limiter.close()))
        }
      })
    } finally {
      await watched.stop()
    }
  })

test.run()
