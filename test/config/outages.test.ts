// Limiters whose configuration store fails: a named error is told, and what is known goes on. Never a wrong limit.
import { Redis } from 'ioredis'
import { createLimiter, type Limiter, type MillraceError, type Policy } from 'millrace'
import type { ConfigStore } from 'millrace/config/memory'
import { memoryConfig } from 'millrace/config/memory'
import { redisConfig } from 'millrace/config/redis'
import { shardedConfig } from 'millrace/config/sharded'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startRedis } from '../redis/servers.js'
import { redisTest } from '../redis/skip.js'
import { down } from './fake-store.js'

const DEFAULT: Policy = { limit: 2, window: '1m' }
const GOLD: Policy = { limit: 50, window: '1m' }

function limiterOn(config: ConfigStore, options: object = {}) {
  const errors: MillraceError[] = []
  const limiter: Limiter = createLimiter({
    config,
    default: DEFAULT,
    maxKeys: 100,
    configCache: { ttl: 20, maxStale: '1h' },
    onConfigError: (error) => void errors.push(error),
    ...options,
  })
  const limitOf = (key: string) => limiter.peek(key, 0).limit
  const told = (code: string) => errors.some((error) => error.code === code)
  return { limiter, errors, limitOf, told }
}

redisTest('a Redis that hangs, is stopped, and comes back with other policies', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, HOST, { retryStrategy: () => 20, maxRetriesPerRequest: null })
  client.on('error', () => {})
  const config = redisConfig({ client, deadlineMs: 200, pollMs: 50 })
  await config.put('gold', GOLD)
  const { limiter, limitOf, told, errors } = limiterOn(config)
  assert.is((await limiter.checkAsync('gold')).limit, 50)

  await server.pause() // it hangs: connections stay open
  await poll(
    () => limitOf('gold') === 50 && told('ERR_MILLRACE_CONFIG_STORE'),
    'an error of the store that hangs',
  )
  assert.is(limitOf('gold'), 50, 'the known policy goes on')
  assert.is(
    (await limiter.checkAsync('stranger')).limit,
    2,
    'a key that is not known gets the default, after the deadline',
  )
  server.resume()

  errors.length = 0
  await server.kill()
  await poll(
    () => limitOf('gold') === 50 && told('ERR_MILLRACE_CONFIG_STORE'),
    'an error of the store that is down',
  )
  assert.is(limitOf('gold'), 50)
  await server.restart()
  await config.put('gold', { limit: 70, window: '1m' })
  await poll(() => limitOf('gold') === 70, 'the new policy')
  await client.set('{millrace:config}:policy:gold', '{ "limit": ')
  errors.length = 0
  await poll(() => limitOf('gold') === 70 && told('ERR_MILLRACE_INVALID_POLICY'), 'the error of the garbage')
  assert.match(errors.find(({ code }) => code === 'ERR_MILLRACE_INVALID_POLICY')!.message, /gold/)
  await client.set('{millrace:config}:policy:gold', '{ "format": 9, "limit": 1, "window": "1m" }')
  errors.length = 0
  await poll(
    () => limitOf('gold') === 70 && errors.some(({ message }) => /update Millrace/.test(message)),
    'the error of the later format',
  )
  assert.is(limitOf('gold'), 70)
  await limiter.close()
  await config.close()
  client.disconnect()
  await server.stop()
})

redisTest('a Redis that is down at the start', async () => {
  const server = await startRedis()
  await server.kill()
  const client = new Redis(server.port, HOST, { retryStrategy: () => 20, maxRetriesPerRequest: null })
  client.on('error', () => {})
  const config = redisConfig({ client, deadlineMs: 200 })
  const open = limiterOn(config)
  const closed = limiterOn(config, { onMiss: 'refuse' })
  assert.is((await open.limiter.checkAsync('gold')).limit, 2)
  assert.equal((await closed.limiter.checkAsync('gold')).source, 'config')
  await server.restart()
  await config.put('gold', GOLD)
  await poll(() => open.limitOf('gold') === 50 && closed.limitOf('gold') === 50, 'the policy')
  await open.limiter.close()
  await closed.limiter.close()
  await config.close()
  client.disconnect()
  await server.stop()
})

test('a dead shard is served stale from the cache, and only its keys are', async () => {
  const shards = { a: memoryConfig(), b: memoryConfig(), c: memoryConfig() }
  const config = shardedConfig(shards)
  const keys = Array.from({ length: 60 }, (_, i) => `key ${i}`)
  for (const key of keys) await config.put(key, GOLD)
  const { limiter, limitOf, told } = limiterOn(config)
  for (const key of keys) assert.is(limitOf(key), 50)
  const dead = () => {
    throw down()
  }
  shards.b.findNow = dead
  shards.b.find = dead
  shards.b.put = dead
  await poll(() => keys.every((key) => limitOf(key) === 50) && told('ERR_MILLRACE_CONFIG_STORE'), 'an error')
  for (const key of keys) assert.is(limitOf(key), 50)
  let changed = 0
  for (const key of keys.slice(0, 20)) {
    if (!(await isStored(config, key))) continue // its shard is dead
    changed++
    await poll(() => limitOf(key) === 60, 'a change on a shard that lives')
  }
  assert.ok(changed > 5 && changed < 20, `${changed} of 20`)
  await limiter.close()
  await config.close()
})

async function isStored(config: ConfigStore, key: string): Promise<boolean> {
  try {
    await config.put(key, { limit: 60, window: '1m' })
    return true
  } catch (error) {
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    return false
  }
}

redisTest.run()
