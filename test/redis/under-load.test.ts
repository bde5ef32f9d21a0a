// run: full
// A server that forgets its scripts, or has been started anew, while requests arrive: no error, nothing twice.
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { CLIENTS, LIBRARIES } from './clients.js'
import { poll } from './poll.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { connectWire, sendOnce } from './wire.js'

const FLUSHES = 20
const CALLERS = 16

for (const library of LIBRARIES) {
  test(`${library}: scripts that are forgotten under load cause no error, and each request is charged once`, async () => {
    const server = await startRedis()
    const client = CLIENTS[library](server.port)
    const limiter = createRedisLimiter({
      ...{ client, prefix: 'test', limit: 1_000_000, window: '1h', deadline: '1m' },
    })
    await limiter.ready()
    const wire = await connectWire(server.port)
    let isEnding = false
    let charged = 0
    const callers = Array.from({ length: CALLERS }, async () => {
      for (; !isEnding; charged++) {
        const { allowed, source } = await limiter.check('key')
        assert.equal([allowed, source], [true, 'redis'])
        await limiter.penalize('other', 2)
      }
    })
    for (let i = 0; i < FLUSHES; i++) {
      await wire.send('SCRIPT', 'FLUSH')
      const before = charged
      await poll(() => charged > before, 'decisions after the loss')
    }
    isEnding = true
    await Promise.all(callers)
    assert.is(await limiter.usage('key'), charged)
    assert.is(await limiter.usage('other'), 2 * charged)
    assert.is((await limiter.stats()).outages, 0)
    await limiter.close()
    wire.close()
    await server.stop()
  })

  test(`${library}: a server that is started anew, without scripts and data, decides again`, async () => {
    const server = await startRedis()
    const limiter = createRedisLimiter({
      ...{ client: CLIENTS[library](server.port), prefix: 'test', limit: 4, window: '1h', deadline: '500ms' },
    })
    await limiter.ready()
    for (let i = 0; i < 3; i++) {
      assert.ok((await limiter.check('key')).allowed)
      await poll(async () => (await limiter.stats()).restored === i, 'the charge that was lost')
      await server.restart()
      assert.is(await sendOnce(server.port, 'DBSIZE'), 0)
      await poll(async () => (await limiter.peek('other')).source === 'redis', 'Redis')
    }
    assert.ok((await limiter.check('key')).allowed)
    await poll(async () => (await limiter.stats()).restored === 3, 'the charge that was lost')
    assert.is(await limiter.usage('key'), 2, 'each charge is sent again once')
    await limiter.close()
    await server.stop()
  })
}

test.run()
