// run: also-full, also-long
// Every figure of a sliding log and of a sliding counter on Redis is what its definition says.
import { Redis } from 'ioredis'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { type Compared, one, runExact } from './exact.js'
import { CounterModel } from './exact-counter.js'
import { LogModel } from './exact-log.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const OPERATIONS = sized({ quick: 1_000, full: 8_000, long: 100_000 })

const LOG: Compared = {
  rule: (random, name) => {
    const limit = one(random, [1, 3, 20, 100])
    const window = one(random, [1, 7, 60, 1_000, 60_000])
    return { name, limit, window, algorithm: 'sliding-log', maxLimit: limit * one(random, [1, 1, 3]) }
  },
  model: (rule) => new LogModel(rule),
}

const COUNTER: Compared = {
  rule: (random, name) => ({
    name,
    limit: one(random, [1, 3, 20, 100]),
    window: one(random, [1, 7, 60, 1_000, 60_000]),
    algorithm: 'sliding-counter',
  }),
  model: (rule) => new CounterModel(rule),
}

let server: Server
let client: Redis

test.before(async () => {
  server = await startRedis()
  client = new Redis(server.port, '127.0.0.1')
})

test.after(async () => {
  client.disconnect()
  await server.stop()
})

const CASES = {
  'sliding log': LOG,
  'sliding log, optimistic': { ...LOG, options: { optimistic: true } },
  'sliding counter': COUNTER,
}

for (const [name, compared] of Object.entries(CASES)) {
  test(`random operations of one to three rules give the figures of a ${name}`, async () => {
    await client.flushall()
    const found = await runExact(client, OPERATIONS, 3, compared)
    assert.ok(found.admitted > OPERATIONS / 10 && found.refused > OPERATIONS / 10, JSON.stringify(found))
    assert.ok(found.givenBack > 0, JSON.stringify(found))
  })
}

test.run()
