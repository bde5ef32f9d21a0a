// run: also-full, typescript
// Frameworks with a limiter on leases: what is held decides requests without a trip, and the headers say what is left.
import { Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { http1Client } from './driver.js'
import { allDrivers } from './drivers.js'

const LIMIT = 200

for (const driver of allDrivers)
  test(`${driver.name}: spends what is held, and refuses at the limit`, async () => {
    const server = await startRedis()
    const redis = new Redis(server.port, '127.0.0.1')
    const limiter = createRedisLimiter({
      ...{ client: redis, prefix: 'test', limit: LIMIT, window: '1h', mode: 'leased', deadline: '1m' },
    })
    const served = await driver.serve({ limiter, key: () => 'all' })
    const { client = http1Client } = driver
    const get = () => client.fetch(`${served.url}/`, { method: 'GET', headers: {} })
    try {
      const statuses: number[] = []
      const ask = async () => {
        const response = await get()
        statuses.push(response.status)
        assert.match(response.headers.get('ratelimit') ?? '', /r=\d+/)
        await response.arrayBuffer()
      }
      for (let i = 0; i < 20; i++) await ask()
      await poll(async () => (await limiter.stats()).leases!.held > 0, 'a lease')
      const before = (await limiter.stats()).leases!
      await ask()
      const after = (await limiter.stats()).leases!
      assert.is(after.spent, before.spent + 1, 'decided by what is held')
      while (statuses.length < LIMIT + 10) await ask()
      assert.is(statuses.filter((status) => status === 200).length, LIMIT)
      assert.is(statuses.filter((status) => status === 429).length, 10)
    } finally {
      await served.close()
      await limiter.close()
      redis.disconnect()
      await server.stop()
    }
  })

test.run()
