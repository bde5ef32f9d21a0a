// The store on a real redis-server: the contract, and how values look to others.
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { redisConfig } from 'millrace/config/redis'
import * as assert from 'uvu/assert'
import { RedisNames } from '#millrace/config/redis-script.js'
import { testStore } from '../conformance/config-stores.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'

let server: Server
test.before(async () => {
  server = await startRedis()
})
test.after(() => server.stop())

let places = 0

for (const [library, Client] of Object.entries({ ioredis: Redis, iovalkey: Valkey }))
  testStore(
    (name, act) => test(`${library}: ${name}`, act),
    async () => {
      const prefix = `test ${++places}`
      const names = new RedisNames(prefix, 0)
      const clients: (Redis | Valkey)[] = []
      return {
        open() {
          const client = new Client(server.port, HOST)
          clients.push(client)
          return redisConfig({ client, prefix })
        },
        async plant(key, text) {
          await sendOnce(server.port, 'SET', names.policyOf(key), text)
          await sendOnce(server.port, 'ZADD', names.keys, 0, key)
        },
        async remove() {
          for (const client of clients) client.disconnect()
        },
      }
    },
  )

test.run()
