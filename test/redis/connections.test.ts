// The connections that a limiter makes of its own: how they end.
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { settled, turn } from '../limiter/support.js'
import { CLIENTS, LIBRARIES, type Library } from './clients.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { addName, holdNames } from './resolver.js'
import { leavingNothing, timers } from './resources.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

let redis: Server
test.before(async () => {
  redis = await startRedis()
})
test.after(async () => {
  await redis?.stop()
})

function limiterOf(
  library: Library,
  port: number,
  host?: string,
  options: Partial<RedisLimiterOptions> = {},
) {
  return createRedisLimiter({
    client: CLIENTS[library](port, host),
    prefix: options.algorithm ?? 'test',
    limit: 1_000,
    window: '1h',
    ...options,
  })
}

interface Stage {
  /** Before the limiter is made. */
  readonly before?: (proxy: TcpProxy) => void
  /** Resolves when its client is in this stage. */
  readonly reach: (proxy: TcpProxy, limiter: RedisLimiter) => unknown
  /** When the limiter is closed. */
  readonly after?: () => void
}

const NAME = 'connections.test'
addName(NAME)
let names = { waiting: () => 0, release: () => {} }

/** Stages in which a limiter may be closed. */
const STAGES: Readonly<Record<string, Stage>> = {
  'as soon as it is made': { reach: () => {} },
  'one turn of the event loop later': { reach: () => turn() },
  "while its server's name is looked up": {
    before: () => {
      names = holdNames()
    },
    reach: () => poll(() => names.waiting() > 0, 'the look-up'),
    after: () => names.release(),
  },
  'when the server has accepted its connection': {
    reach: (proxy) => poll(() => proxy.accepted > 0, 'the connection'),
  },
  'when the server does not answer its greeting': {
    before: (proxy) => proxy.dropAll(),
    reach: (proxy) => poll(() => proxy.lost > 0, 'the greeting'),
  },
  'while the server refuses connections': {
    before: (proxy) => proxy.refuse(),
    reach: async (_, limiter) => assert.is((await limiter.check('key')).source, 'outage'),
  },
  'when it is ready': { reach: (_, limiter) => limiter.ready() },
  'after an outage': {
    reach: async (proxy, limiter) => {
      await limiter.ready()
      await limiter.check('key')
      proxy.cutReplies()
      assert.is((await limiter.check('key')).source, 'outage')
    },
  },
}

/** Ways of deciding that differ in their connections. */
const DECIDERS: Readonly<Record<string, Partial<RedisLimiterOptions>>> = {
  'by a script': {},
  'by transactions': { algorithm: 'sliding-log', optimistic: true },
}

for (const library of LIBRARIES) {
  for (const [way, options] of Object.entries(DECIDERS)) {
    for (const [stage, { before, reach, after }] of Object.entries(STAGES)) {
      test(`${library}, ${way}: closed ${stage}, a limiter leaves no socket and no timer`, async () => {
        const proxy = await startProxy(redis.port)
        // The proxy goes on: a client that was not closed would find it, when its timer fires.
        await leavingNothing(async () => {
          before?.(proxy)
          const limiter = limiterOf(library, proxy.port, NAME, options)
          const ready = settled(limiter.ready())
          await reach(proxy, limiter)
          await limiter.close()
          after?.()
          await ready
          proxy.restore()
          await proxy.accept()
          await sendOnce(proxy.port, 'PING') // the proxy accepts connections in their order
          await poll(() => proxy.open === 0, 'the end of all connections')
        })
        const { accepted } = proxy
        await turn()
        assert.equal([proxy.open, proxy.accepted], [0, accepted])
        proxy.close()
      })
    }
  }

  test(`${library}: an open limiter has no timer when all its calls are settled`, async () => {
    const before = timers()
    const proxy = await startProxy(redis.port)
    const limiter = limiterOf(library, proxy.port)
    await limiter.ready()
    proxy.cutReplies()
    assert.is((await limiter.check('key')).source, 'outage')
    await poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')
    assert.ok(timers() > before, 'the deadline of the last call')
    await poll(() => timers() <= before, 'the end of the timers')
    await limiter.close()
    proxy.close()
  })
}

test.run()
