// What a key has used counts in each window that its policies give it, in every place where policies are.
import { Redis } from 'ioredis'
import { Memcache } from 'memcache'
import { type AsyncLimiter, attachLimiter, createLimiter, manualClock, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter } from 'millrace/redis'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import type { Server } from '../redis/process.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'

const SHORT: Policy = { limit: 10, window: '1s' }
const LONG: Policy = { limit: 10, window: '10m' }
const HOUR: Policy = { limit: 100, window: '1h' }
const HOURS: Policy = { limit: 100, window: '2h' }

for (const name of ['user:a', 'user:*']) {
  test(`a longer window counts what the shorter one did, also if the key rests until it is over: ${name}`, async () => {
    const clock = manualClock(1_000_000)
    const config = memoryConfig({ 'user:*': SHORT })
    const first = createLimiter({ config, default: HOUR, clock, maxKeys: 100 })
    const second = attachLimiter(first.share(), { config })
    first.check('user:a', 10)
    await config.put(name, LONG)
    clock.advance(3_000)
    assert.not(second.check('user:a').allowed)
    assert.not(first.check('user:a').allowed)
    clock.advance(620_000)
    assert.ok(first.check('user:a', 10).allowed)
  })
}

test('other keys that take the places of a shorter window take nothing from a longer one', async () => {
  const clock = manualClock(1_000_000)
  const config = memoryConfig({ 'user:*': SHORT })
  const limiter = createLimiter({ config, default: HOUR, clock, maxKeys: 16 })
  limiter.check('user:a', 10)
  await config.put('user:a', LONG)
  clock.advance(3_000)
  for (let i = 0; i < 500; i++) limiter.check(`user:${i}`)
  assert.not(limiter.check('user:a').allowed)
})

test('a key that no thread remembers is found in its old window when it is over', async () => {
  const clock = manualClock(1_000_000)
  const config = memoryConfig({ 'user:*': SHORT })
  const limiter = createLimiter({ config, default: HOUR, clock, maxKeys: 100, configCache: { maxKeys: 1 } })
  limiter.check('user:a', 10)
  limiter.check('user:b')
  await config.put('user:*', LONG)
  clock.advance(3_000)
  assert.not(limiter.check('user:a').allowed)
})

test('what a window was charged for an older one counts in the next, also if the older one has lost it', async () => {
  const clock = manualClock(1_000_000)
  const config = memoryConfig({ 'user:*': SHORT })
  const limiter = createLimiter({ config, default: HOUR, clock, maxKeys: 16 })
  limiter.check('user:a', 10)
  await config.put('user:a', LONG)
  clock.advance(3_000)
  for (let i = 0; i < 500; i++) limiter.check(`user:${i}`)
  await config.put('user:a', { limit: 10, window: '1h' })
  assert.not(limiter.check('user:a').allowed)
})

test('old units that were charged do not hide new ones', async () => {
  const clock = manualClock(1_000_000)
  const between: Policy = { limit: 10, window: '20s' }
  const config = memoryConfig({ a: between })
  const limiter = createLimiter({ config, default: { limit: 10, window: '1m' }, clock, maxKeys: 100 })
  limiter.check('a', 5)
  await config.delete('a')
  clock.advance(40_000)
  await config.put('a', between)
  limiter.check('a', 5)
  await config.delete('a')
  assert.is(limiter.usage('a'), 10)
  clock.advance(22_000)
  assert.is(limiter.usage('a'), 5)
})

test('a shorter window in between takes nothing from a longer one', async () => {
  const clock = manualClock(1_000_000)
  const config = memoryConfig()
  const limiter = createLimiter({ config, default: LONG, clock, maxKeys: 100 })
  limiter.check('a', 5)
  clock.advance(60_000)
  await config.put('a', SHORT)
  limiter.check('a', 5)
  await config.delete('a')
  assert.equal([limiter.usage('a'), limiter.check('a').allowed], [10, false])
})

test('what a thread admits in an old window before it learns of the change counts in the new one then', async () => {
  const clock = manualClock(1_000_000)
  const [early, late] = [memoryConfig(), memoryConfig()]
  const first = createLimiter({ config: early, default: HOUR, clock, maxKeys: 100 })
  const second = attachLimiter(first.share(), { config: late })
  first.check('a', 5)
  second.check('a', 5)
  await early.put('a', HOURS)
  first.check('a', 5)
  second.check('a', 5)
  await late.put('a', HOURS)
  assert.equal([first.usage('a'), second.usage('a')], [20, 20])
})

test('several rules, each of its own unit, count what the rules before them did', async () => {
  const clock = manualClock(1_000_000)
  const config = memoryConfig({ a: { limit: '10MB', unit: '1MB', window: '1m' } })
  const limiter = createLimiter({ config, default: HOUR, clock, maxKeys: 100 })
  limiter.check('a', 4e6)
  await config.put('a', {
    rules: [
      { name: 'short', limit: '10MB', unit: '1MB', window: '1s' },
      { name: 'long', limit: '10MB', unit: '1MB', window: '1h' },
    ],
  })
  clock.advance(2_000)
  limiter.check('a', 3e6)
  assert.is(limiter.usage('a', undefined, { rule: 'long' }), 7e6)
  await config.delete('a')
  assert.is(limiter.usage('a'), 0, 'bytes are no requests')
  await config.put('a', { limit: '10MB', unit: '1MB', window: '2h' })
  assert.is(limiter.usage('a'), 7e6)
})

test('a cleared key has nothing to bring along', async () => {
  const config = memoryConfig()
  const limiter = createLimiter({ config, default: HOUR, clock: manualClock(1_000_000), maxKeys: 100 })
  limiter.check('a', 5)
  await config.put('a', HOURS)
  limiter.clear('a')
  limiter.check('a', 3)
  await config.delete('a')
  assert.is(limiter.usage('a'), 3)
})

test('a pool brings along what it was deciding at the change', async () => {
  const config = memoryConfig()
  const options = { config, default: HOUR, maxKeys: 100, pool: { maxThreads: 2 } } as const
  const limiter = createLimiter({ ...options, engine: 'pool' })
  await toAndFro([limiter], config)
  await limiter.close()
})

let redis: Server
redisTest.before(async () => {
  redis = await startRedis()
})
redisTest.after(() => redis.stop())

redisTest('two nodes on Redis that learn of a change at once charge for it once', async () => {
  const config = memoryConfig()
  const client = new Redis(redis.port, '127.0.0.1')
  const make = () => createRedisLimiter({ client, prefix: 'moves', deadline: '1m', config, default: HOUR })
  const limiters = [make(), make()]
  await toAndFro(limiters, config)
  for (const limiter of limiters) await limiter.close()
  client.disconnect()
})

redisTest('a longer window on Redis counts what the shorter one did when that is gone', async () => {
  const config = memoryConfig({ a: SHORT })
  const client = new Redis(redis.port, '127.0.0.1')
  const limiter = createRedisLimiter({ client, prefix: 'gone', deadline: '1m', config, default: HOUR })
  await limiter.check('a', 10)
  const before = await client.keys('*gone*')
  assert.is(before.length, 1)
  await config.put('a', LONG)
  await poll(async () => (await client.exists(before)) === 0, 'the end of the shorter window')
  assert.not((await limiter.check('a')).allowed)
  await limiter.close()
  client.disconnect()
})

let memcached: Server
memcachedTest.before(async () => {
  memcached = await startMemcached()
})
memcachedTest.after(() => memcached.stop())

memcachedTest('two nodes on Memcached that learn of a change at once charge for it once', async () => {
  const config = memoryConfig()
  const client = new Memcache(`127.0.0.1:${memcached.port}`)
  const make = () =>
    createMemcachedLimiter({ client, prefix: 'moves', deadline: '1m', config, default: HOUR })
  const limiters = [make(), make()]
  await toAndFro(limiters, config)
  for (const limiter of limiters) await limiter.close()
  await client.disconnect()
})

/** A key of all limiters that goes to another window and back, while each is deciding. */
async function toAndFro(
  limiters: readonly AsyncLimiter[],
  config: ReturnType<typeof memoryConfig>,
): Promise<void> {
  await Promise.all(limiters.map((limiter) => limiter.check('a', 0)))
  let used = 0
  for (let i = 0; i < 3; i++) {
    for (const change of [() => config.put('a', HOURS), () => config.delete('a')]) {
      const inFlight = limiters.map((limiter) => limiter.check('a', 2))
      await change()
      await Promise.all(inFlight)
      used += 2 * limiters.length
      for (const limiter of limiters) assert.is(await limiter.usage('a'), used, `change ${i}`)
    }
  }
}

test.run()
redisTest.run()
memcachedTest.run()
