// run: full
// Connections that are cut, scripts that are forgotten and a server that is started anew, while requests arrive.
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { turn } from '../limiter/support.js'
import { CLIENTS, LIBRARIES } from './clients.js'
import { poll } from './poll.js'
import { startProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { connectWire, sendOnce } from './wire.js'

const FLUSHES = 20
const CALLERS = 16
const CUTS = 24

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

  test(`${library}: connections that are cut under load: no request is charged twice`, async () => {
    const server = await startRedis()
    const proxy = await startProxy(server.port)
    const limiter = createRedisLimiter({
      ...{ client: CLIENTS[library](proxy.port), prefix: 'test', limit: 1_000_000, window: '1h' },
      deadline: '100ms',
    })
    await limiter.ready()
    let isEnding = false
    let admitted = 0
    let unknown = 0
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isEnding) {
        const { source } = await limiter.check('key')
        if (source === 'redis') admitted++
        else unknown++
        await turn()
      }
    })
    const cuts = [() => proxy.cutReplies(), () => proxy.cutRequests(), () => proxy.cutAll(), holdOnce]
    for (let i = 0; i < CUTS; i++) {
      const before = admitted
      await cuts[i % cuts.length]!()
      await poll(() => admitted > before + CALLERS, 'decisions after the cut')
    }
    isEnding = true
    await Promise.all(callers)
    await poll(async () => (await limiter.peek('other')).source === 'redis', 'Redis')
    const used = await limiter.usage('key')
    assert.ok(proxy.cut > CUTS / 2 && unknown > 0)
    assert.ok(admitted < used && used <= admitted + unknown, `${admitted} ${used} ${unknown}`)
    await limiter.close()
    proxy.close()
    await server.stop()

    async function holdOnce() {
      const before = unknown
      proxy.hold()
      await poll(() => unknown > before, 'a deadline')
      proxy.release()
    }
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
    assert.is(await limiter.usage('key'), 4, 'each charge counts once')
    await limiter.close()
    await server.stop()
  })
}

test.run()
