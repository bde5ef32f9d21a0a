// The option `nearLimit` of limiters on every server: what is refused, and what it changes in their counts.
import { Redis } from 'ioredis'
import type { AsyncLimiter, MillraceError } from 'millrace'
import { createBackendLimiter } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter } from 'millrace/redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { lmdbValues, temporaryFolder } from '../backend/conformance-place.js'
import { clientOf } from '../memcached/limiters.js'
import { HOST } from '../redis/ports.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'

const RULE = { limit: 10, window: '1m' } as const

/** Each way to say which rules there are. */
const RULES = {
  'one rule': RULE,
  'several rules': {
    rules: [
      { name: 'minute', ...RULE },
      { name: 'hour', limit: 100, window: '1h' },
    ],
  },
  'policies of a store': { config: memoryConfig(), default: RULE },
} as const

let prefixes = 0

/** Makes limiters with these options, as `create` of each server. */
type Make = (options: object) => AsyncLimiter

/** Each starts its server, and makes limiters on it. */
const SERVERS: Readonly<Record<string, readonly [test: typeof any, start: () => Promise<Make>]>> = {
  Redis: [
    redisTest as typeof any,
    async () => {
      const client = new Redis((await startRedis()).port, HOST, { lazyConnect: true })
      return (options) => createRedisLimiter({ client, prefix: `near ${++prefixes}`, ...options } as never)
    },
  ],
  Memcached: [
    memcachedTest as typeof any,
    async () => {
      const client = clientOf((await startMemcached()).port)
      return (options) =>
        createMemcachedLimiter({ client, prefix: `near ${++prefixes}`, ...options } as never)
    },
  ],
  'Memcached, strict': [
    memcachedTest as typeof any,
    async () => {
      const client = clientOf((await startMemcached()).port)
      const own = { client, strict: true }
      return (options) =>
        createMemcachedLimiter({ ...own, prefix: `near ${++prefixes}`, ...options } as never)
    },
  ],
  'a backend': [
    any,
    async () => {
      const values = await lmdbValues(temporaryFolder())
      return (options) =>
        createBackendLimiter({ values, source: 'lmdb', prefix: `near ${++prefixes}`, ...options } as never)
    },
  ],
}

for (const [server, [test, start]] of Object.entries(SERVERS)) {
  test(`${server}: counts from the share of the option on, by 80 % without it`, async () => {
    const make = await start()
    for (const [kind, rules] of Object.entries(RULES)) {
      for (const [nearLimit, near] of [
        [undefined, 3],
        [0.5, 6],
        [1, 1],
        [0.07, 10],
      ] as const) {
        const limiter = make({ ...rules, deadline: '1m', ...(nearLimit !== undefined && { nearLimit }) })
        for (let i = 0; i < 12; i++) await limiter.check('key')
        const { admitted, refused, nearLimit: counted, rules: byRule } = (await limiter.stats()).own
        const says = `${kind}, ${nearLimit}`
        assert.equal([admitted, refused, counted], [10, 2, near], says)
        assert.is(Object.values(byRule)[0]!.nearLimit, near, says)
        await limiter.close()
      }
    }
  })

  test(`${server}: refuses a share that is none`, async () => {
    const make = await start()
    for (const rules of Object.values(RULES))
      for (const nearLimit of [0, -1, 1.1, Number.NaN, '0.8', null])
        assert.throws(
          () => make({ ...rules, nearLimit }),
          ({ code, option }: MillraceError) =>
            code === 'ERR_MILLRACE_INVALID_OPTION' && option === 'nearLimit',
        )
  })
}

any.run()
