// run: full
// Calls of an outage leave no memory behind, in the limiter or in its client.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import { turn } from '../limiter/support.js'
import { CLIENTS, LIBRARIES } from './clients.js'
import { FAULTS, withPlace } from './faults.js'
import { poll } from './poll.js'
import { redisTest as test } from './skip.js'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const CALLS = 50_000
const TOGETHER = 50
/** What may be left of a call on average. A call that is kept is some hundred bytes, with its promise. */
const MOST_BYTES = 16

async function callAll(limiter: RedisLimiter): Promise<void> {
  for (let i = 0; i < CALLS; i += TOGETHER) {
    await Promise.all(Array.from({ length: TOGETHER }, (_, j) => limiter.check(`key ${j}`)))
    await turn()
  }
}

async function usedBytes(): Promise<number> {
  await turn()
  gc()
  await turn()
  gc()
  return process.memoryUsage().heapUsed
}

for (const library of LIBRARIES) {
  for (const fault of FAULTS) {
    test(`${library}: no memory is left of calls to a server that is ${fault.name}`, () =>
      withPlace(async (place) => {
        const limiter = createRedisLimiter({
          client: CLIENTS[library](place.proxy.port, place.name),
          ...{ prefix: 'test', limit: 10, window: '1h', deadline: '20ms' },
        })
        await limiter.ready()
        await fault.begin(place)
        await callAll(limiter) // V8 compiles, tables grow
        const before = await usedBytes()
        await callAll(limiter)
        const isLittle = async () => (await usedBytes()) - before < MOST_BYTES * CALLS
        await poll(isLittle, `the end of the memory of ${CALLS} calls`)
        await fault.end(place)
        await limiter.close()
      }))
  }
}

test.run()
