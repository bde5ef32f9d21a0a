// A request or a reply that is lost or late on the way, at each client library: what is charged, and what is told.
import type { Duration } from 'millrace'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { settled } from '../limiter/support.js'
import { CLIENTS, LIBRARIES } from './clients.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { connectWire, type Wire } from './wire.js'

let redis: Server
let direct: Wire
test.before(async () => {
  redis = await startRedis()
  direct = await connectWire(redis.port)
})
test.after(async () => {
  direct?.close()
  await redis?.stop()
})

interface Scene {
  readonly limiter: RedisLimiter
  readonly proxy: TcpProxy
}

/** Tests with a limiter of 4 an hour that reaches the server through a proxy. */
function lostTest(name: string, act: (scene: Scene) => Promise<void>, deadline = '250ms' as Duration): void {
  for (const library of LIBRARIES) {
    test(`${library}: ${name}`, async () => {
      await direct.send('FLUSHALL')
      const proxy = await startProxy(redis.port)
      const client = CLIENTS[library](proxy.port)
      const limiter = createRedisLimiter({ client, prefix: 'test', limit: 4, window: '1h', deadline })
      try {
        await limiter.ready()
        await act({ limiter, proxy })
      } finally {
        await limiter.close()
        proxy.close()
      }
    })
  }
}

/** Resolves when Redis decides. A peek charges nothing. */
const recovered = (limiter: RedisLimiter) =>
  poll(async () => (await limiter.peek('any')).source === 'redis', 'Redis')

/** What the server has charged. */
async function used(limiter: RedisLimiter, key = 'key'): Promise<number> {
  await recovered(limiter)
  return limiter.usage(key)
}

lostTest('a check whose reply is cut off is charged once', async ({ limiter, proxy }) => {
  await recovered(limiter)
  proxy.cutReplies()
  const { allowed, source } = await limiter.check('key')
  assert.equal([allowed, source], [false, 'outage'])
  assert.is(proxy.cut, 1)
  assert.is(await used(limiter), 1)
  const decided = await Promise.all(Array.from({ length: 10 }, () => limiter.check('key')))
  assert.is(decided.filter(({ allowed }) => allowed).length, 3, 'the rest of the limit')
})

lostTest('a wait whose reply is cut off does not ask again: it is charged once', async (scene) => {
  const { limiter, proxy } = scene
  await recovered(limiter)
  proxy.cutReplies()
  const outcome = await settled(limiter.wait('key'))
  const { code, mayBeCharged } = (outcome as PromiseRejectedResult).reason
  assert.equal([code, mayBeCharged], ['ERR_MILLRACE_OUTAGE', true])
  assert.is(await used(limiter), 1)
})

lostTest('a wait that was not sent asks again, and is charged once', async ({ limiter, proxy }) => {
  await recovered(limiter)
  proxy.close()
  await poll(async () => (await limiter.peek('any')).source === 'outage', 'the outage')
  const waiting = limiter.wait('key')
  await proxy.accept()
  assert.is((await waiting).source, 'redis')
  assert.is(await used(limiter), 1)
})

lostTest('calls that share a pipeline whose reply is cut off are charged once each', async (scene) => {
  const { limiter, proxy } = scene
  await recovered(limiter)
  proxy.cutReplies()
  const decided = await Promise.all([limiter.check('key'), limiter.check('key', 2), limiter.check('other')])
  assert.equal(
    decided.map(({ source }) => source),
    ['outage', 'outage', 'outage'],
  )
  assert.equal([await used(limiter), await used(limiter, 'other')], [3, 1])
})

lostTest('a check whose request is cut off is not charged', async ({ limiter, proxy }) => {
  await recovered(limiter)
  proxy.cutRequests()
  assert.is((await limiter.check('key')).source, 'outage')
  assert.is(proxy.cut, 1)
  assert.is(await used(limiter), 0)
})

lostTest(
  'changes whose reply is cut off are made once, and the error says so',
  async ({ limiter, proxy }) => {
    const changes = [
      { act: () => limiter.penalize('key', 3), after: 3 },
      { act: () => limiter.refund('key', 1), after: 2 },
      { act: () => limiter.clear('key'), after: 0 },
    ]
    for (const { act, after } of changes) {
      await recovered(limiter)
      proxy.cutReplies()
      const error = await act().catch((reason) => reason)
      assert.equal([error.code, error.mayBeCharged], ['ERR_MILLRACE_OUTAGE', true])
      assert.is(await used(limiter), after)
    }
  },
)

lostTest('a reply after the deadline is void, but its charge stays', async ({ limiter, proxy }) => {
  await recovered(limiter)
  proxy.hold()
  const { allowed, source } = await limiter.check('key', 3)
  assert.equal([allowed, source], [false, 'outage'])
  proxy.release()
  assert.is(await used(limiter), 3)
  // The replies after it belong to the requests after it.
  const [other, key] = await Promise.all([limiter.check('other', 2), limiter.check('key')])
  assert.equal([other!.remaining, key!.remaining], [2, 0])
  const stats = await limiter.stats()
  assert.equal([stats.allowed, stats.denied, stats.withoutStore.closed], [2, 0, 1])
})

lostTest('a late refusal and a late error are void, too', async ({ limiter, proxy }) => {
  await recovered(limiter)
  await direct.send('SET', 'mr:1:test:{damaged}:default', 'no value of a limiter')
  await direct.send('SCRIPT', 'FLUSH')
  proxy.hold()
  const decided = await Promise.all([limiter.check('key', 5), limiter.check('damaged')])
  assert.ok(decided.every(({ source }) => source === 'outage'))
  proxy.release()
  assert.is(await used(limiter), 0)
})

lostTest('a call that is aborted settles at once, and its charge stays', abortHeld, '1m')

async function abortHeld({ limiter, proxy }: Scene): Promise<void> {
  await recovered(limiter)
  proxy.hold()
  const aborting = new AbortController()
  const call = settled(limiter.check('key', 1, { signal: aborting.signal }))
  await poll(async () => (await direct.send('EXISTS', 'mr:1:test:{key}:default')) === 1, 'the charge')
  aborting.abort()
  const outcome = await call
  assert.is(outcome.status, 'rejected')
  assert.ok((outcome as PromiseRejectedResult).reason.mayBeCharged)
  proxy.release()
  assert.is(await used(limiter), 1)
}

test.run()
