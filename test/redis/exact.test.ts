// run: also-full, also-long
// Every figure of a decision on Redis is what the algorithm's definition says.
import { Redis } from 'ioredis'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { runExact } from './exact.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const OPERATIONS = sized({ quick: 5_000, full: 60_000, long: 200_000 })

test('random operations of one to three rules give the figures of the definition', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  try {
    const found = await runExact(client, OPERATIONS, 7)
    assert.ok(found.admitted > OPERATIONS / 10 && found.refused > OPERATIONS / 10, JSON.stringify(found))
    assert.ok(found.givenBack > OPERATIONS / 2_000, JSON.stringify(found))
  } finally {
    client.disconnect()
    await server.stop()
  }
})

test.run()
