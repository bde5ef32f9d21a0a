// run: full
// A limiter with `createSentinel()` of node-redis, while replicas are promoted.
import { createRedisLimiter } from 'millrace/redis'
import { createSentinel } from 'redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { leavingNothing } from './resources.js'
import { SENTINEL_NAME, startSentinel } from './sentinel.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const HARMS: Readonly<Record<string, (primary: Server, sentinel: Server) => Promise<void>>> = {
  'is killed': (primary) => primary.kill(),
  'stands still': (primary) => primary.pause(),
  'is demoted': (_, { port }) => sendOnce(port, 'SENTINEL', 'FAILOVER', SENTINEL_NAME),
}

const clientOf = ({ port }: Server) =>
  createSentinel({ name: SENTINEL_NAME, sentinelRootNodes: [{ host: HOST, port }] })

for (const [kind, harm] of Object.entries(HARMS))
  test(`a primary that ${kind}: the promoted replica decides, and a closed limiter leaves nothing`, async () => {
    const watched = await startSentinel()
    try {
      await leavingNothing(async () => {
        const limiter = createRedisLimiter({
          client: clientOf(watched.sentinel),
          prefix: 'test',
          limit: 1_000_000,
          window: '1h',
        })
        try {
          await limiter.ready()
          await poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')
          await sendOnce(watched.primary.port, 'WAIT', 1, 0)
          const { primary } = watched
          await watched.failover((old) => harm(old, watched.sentinel))
          const scripts = () => sendOnce(watched.primary.port, 'INFO', 'commandstats')
          await poll(async () => {
            await limiter.check('key')
            return /cmdstat_evalsha:calls=[2-9]/.test(await scripts())
          }, 'decisions by the promoted replica')
          await poll(async () => (await limiter.check('key')).source === 'redis', 'Redis')
          primary.resume()
        } finally {
          await limiter.close()
        }
      })
    } finally {
      await watched.stop()
    }
  })

test('the client of the caller is refused by name where it would be used itself', () => {
  const client = createSentinel({ name: 'x', sentinelRootNodes: [{ host: HOST, port: 1 }] })
  const act = () => createRedisLimiter({ client, prefix: 'x', limit: 1, window: '1s', ownConnection: false })
  assert.throws(act, ({ code, option }: { code: string; option: string }) => {
    return code === 'ERR_MILLRACE_INVALID_OPTION' && option === 'ownConnection'
  })
})

test.run()
