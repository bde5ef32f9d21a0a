// Limiters on Redis and Memcached that take their rules from a configuration store.
import { Redis } from 'ioredis'
import { Memcache } from 'memcache'
import type { MillraceError } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects } from '../limiter/support.js'
import type { Server } from '../redis/process.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'
import { assertOwnLimits, policiesOf } from './many-plans.js'

let server: Server
let client: Redis
let memcached: Server

redisTest.before(async () => {
  server = await startRedis()
  client = new Redis(server.port, '127.0.0.1', { lazyConnect: true })
})

redisTest.after(async () => {
  client.disconnect()
  await server.stop()
})

memcachedTest.before(async () => {
  memcached = await startMemcached()
})

memcachedTest.after(async () => {
  await memcached.stop()
})

redisTest('two nodes go by the policies of one store, and a change holds for both', async () => {
  const config = memoryConfig({
    'user:*': { limit: 3, window: '1m' },
    'user:vip:*': {
      rules: [
        { name: 's', limit: 2, window: '1s' },
        { name: 'h', limit: 50, window: '1h' },
      ],
    },
  })
  const make = () =>
    createRedisLimiter({
      client,
      prefix: 'plans',
      deadline: '1m',
      config,
      default: { limit: 2, window: '1m' },
    })
  const [one, two] = [make(), make()]
  assert.is((await one.check('user:1', 2)).remaining, 1)
  assert.equal([(await two.check('user:1')).remaining, (await two.check('user:1')).allowed], [0, false])
  assert.is((await one.check('x')).limit, 2)
  await config.put('user:1', { limit: 5, window: '1m' })
  assert.is((await two.check('user:1')).remaining, 1)
  assert.is((await one.check('user:vip:1')).rules.length, 2)
  await config.put('user:1', { limit: 9, window: '1h' })
  assert.is((await one.check('user:1')).remaining, 4, 'what was used is charged in the new window')
  assert.is((await two.check('user:1')).remaining, 3)
  assert.is((await one.stats()).config?.windows, 3)
  const decision = await two.check('user:1')
  assert.is(await two.refund(decision), 1)
  assert.is(await one.usage('user:1'), 6)
  await one.close()
  await two.close()
})

redisTest('concurrent calls go by their own limits, however many plans they need', async () => {
  const policies = policiesOf(60)
  const limiter = createRedisLimiter({
    client,
    prefix: 'many',
    deadline: '1m',
    config: memoryConfig(policies),
    configCache: { maxKeys: 5 },
    default: { limit: 2, window: '1m' },
  })
  await assertOwnLimits(limiter, 60)
  const batch = await limiter.checkMany(Object.keys(policies), 0, { remaining: true })
  assert.equal(
    [...batch.remaining!],
    Array.from({ length: 60 }, (_, i) => i),
  )
  await limiter.close()
})

redisTest('what Redis can not count is refused at put, by name', async () => {
  const config = memoryConfig()
  const errors: MillraceError[] = []
  const limiter = createRedisLimiter({
    client,
    prefix: 'refused',
    config,
    default: { limit: 2, window: '1m' },
    onConfigError: (error) => void errors.push(error),
  })
  const policy = { limit: 5, window: '1h', granularity: '100ms' } as const
  await assertRejects(() => config.put('a', policy), 'ERR_MILLRACE_POLICY_TOO_LARGE', 'policy')
  assert.is(await config.get('a'), undefined)
  assertRaises(
    () => createRedisLimiter({ client, prefix: 'x'.repeat(56), config, default: { limit: 2, window: '1m' } }),
    'ERR_MILLRACE_INVALID_OPTION',
    'prefix',
  )
  assertRaises(() => limiter.share(), 'ERR_MILLRACE_INVALID_SHARE', 'limiter')
  await limiter.close()
})

memcachedTest('a limiter on Memcached takes its rules from a store, too', async () => {
  const config = memoryConfig({ 'user:*': { limit: 3, window: '1h' } })
  const cached = new Memcache(`127.0.0.1:${memcached.port}`)
  const limiter = createMemcachedLimiter({
    client: cached,
    prefix: 'plans',
    deadline: '1m',
    config,
    default: { limit: 2, window: '1h' },
  })
  assert.is((await limiter.check('user:1', 3)).allowed, true)
  assert.is((await limiter.check('user:1')).allowed, false)
  assert.is((await limiter.check('x')).limit, 2)
  await config.put('user:1', { limit: 4, window: '1h' })
  assert.is((await limiter.check('user:1')).allowed, true)
  await limiter.close()
  await cached.disconnect()
})

redisTest.run()
memcachedTest.run()
