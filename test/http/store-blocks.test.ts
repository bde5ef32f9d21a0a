// run: also-full
// The options `delay` and `ban` with limiters whose counts are on Redis and on Memcached: what is blocked is refused.
import { Redis } from 'ioredis'
import { Memcache } from 'memcache'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import type { Server } from '../redis/process.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'
import { bansAsTold, refusesBlocked } from './blocked.js'
import { allDrivers } from './drivers.js'
import { nodeDriver } from './node-driver.js'

/** Far longer than a test takes. */
const RULE = { limit: 2, window: '1m', deadline: '30s' } as const

const CLAIMS = {
  'delay: blocked is refused, and so is what can never be admitted': refusesBlocked,
  'ban: the refusal that begins it tells its time, and the key is refused from then on': bansAsTold,
}

const REDIS: Readonly<Record<string, Partial<RedisLimiterOptions>>> = {
  'sliding-window': {},
  'sliding-counter': { algorithm: 'sliding-counter' },
  'sliding-log': { algorithm: 'sliding-log' },
  'sliding-log by transactions': { algorithm: 'sliding-log', optimistic: true },
  'sliding-window, split': { split: 2 },
  'sliding-window, refusals remembered': { rememberRefusals: true },
}

let redis: Server
let client: Redis
let memcached: Server
let cached: Memcache

redisTest.before(async () => {
  redis = await startRedis()
  client = new Redis(redis.port, '127.0.0.1', { lazyConnect: true })
})
redisTest.after(async () => {
  client.disconnect()
  await redis.stop()
})
memcachedTest.before(async () => {
  memcached = await startMemcached()
  cached = new Memcache(`127.0.0.1:${memcached.port}`)
})
memcachedTest.after(async () => {
  await cached.disconnect()
  await memcached.stop()
})

let prefixes = 0

for (const [claim, act] of Object.entries(CLAIMS)) {
  for (const driver of allDrivers) {
    const kinds = driver === nodeDriver ? Object.entries(REDIS) : Object.entries(REDIS).slice(0, 1)
    for (const [kind, options] of kinds) {
      redisTest(`${driver.name}, Redis, ${kind}: ${claim}`, async () => {
        const limiter = createRedisLimiter({ client, prefix: `blocks ${++prefixes}`, ...RULE, ...options })
        try {
          await act(driver, limiter)
        } finally {
          await limiter.close()
        }
      })
    }
    memcachedTest(`${driver.name}, Memcached: ${claim}`, async () => {
      const limiter = createMemcachedLimiter({ client: cached, prefix: `blocks${++prefixes}`, ...RULE })
      try {
        await act(driver, limiter)
      } finally {
        await limiter.close()
      }
    })
  }
}

redisTest.run()
