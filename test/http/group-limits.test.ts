// run: also-full
// `groupLimit`: wrong options, keys that fail or come late, and members on Redis.
import { Redis } from 'ioredis'
import { createLimiter, type MillraceError } from 'millrace'
import { groupLimit } from 'millrace/http'
import { createRedisLimiter } from 'millrace/redis'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import type { Server } from '../redis/process.js'
import { startRedis } from '../redis/servers.js'
import { redisTest } from '../redis/skip.js'
import { type FrameworkDriver, http1Client, type Served } from './driver.js'
import { allDrivers } from './drivers.js'

const RULE = { limit: 2, window: '1m' } as const
const CLOSED_PORT = 1
const key = () => 'all'

async function serving(driver: FrameworkDriver, options: object, use: (served: Served) => Promise<void>) {
  const served = await driver.serve(options)
  try {
    await use(served)
  } finally {
    await served.close()
  }
}

test('wrong options of a group fail at creation, and name what is wrong', () => {
  const limiter = createLimiter(RULE)
  const members = { account: { ...RULE, key }, address: RULE }
  const wrong: readonly (readonly [option: string, options: unknown])[] = [
    ['options', undefined],
    ['options', { members, routes: {} }],
    ['options', { members, key }],
    ['options', { members, ban: { after: 1, for: '1h' } }],
    ['options', { members, delay: { after: 1, ms: 1 } }],
    ['options', { members, shared: { file: '/tmp/counts' } }],
    ['members', { cost: () => 1 }],
    ['members', { members: {} }],
    ['members.café', { members: { café: { ...RULE, key } } }],
    ['members', { members: [RULE] }],
    ['members.account', { members: { account: 'alice' } }],
    ['members.account', { members: { account: { ...RULE, cost: () => 1 } } }],
    ['members.account.key', { members: { account: { ...RULE, key: 'alice' } } }],
    ['members.b', { members: { a: { limiter, key }, b: { limiter, key } } }],
    ['members.a', { members: { a: { limiter: {}, key } } }],
    ['limit', { members, limit: 5 }],
    ['nearLimit', { members, nearLimit: 2 }],
    ['standard', { members, standard: 'draft-9' }],
    ['handler', { members, handler: 'answer' }],
  ]
  for (const [option, options] of wrong) {
    assertRaises(() => groupLimit(options as never), 'ERR_MILLRACE_INVALID_OPTION', option)
  }
  assertRaises(
    () => groupLimit({ members: { account: { limit: 5 } } }),
    'ERR_MILLRACE_INVALID_RULE',
    'window',
  )
  limiter.close()
})

let redis: Server
redisTest.before(async () => {
  redis = await startRedis()
})
redisTest.after(() => redis.stop())

for (const driver of allDrivers) {
  const { client = http1Client } = driver
  const get = (url: string) => client.fetch(`${url}/`, { method: 'GET', headers: {} })

  test(`${driver.name}: a key of a member that never comes fails at the deadline, and names the member`, async () => {
    const errors: unknown[] = []
    const onError = (error: MillraceError) => errors.push([error.code, error.option])
    const late = { ...RULE, key: () => new Promise(() => {}) }
    const options = { members: { account: late, address: { ...RULE, key } }, keyTimeoutMs: 1, onError }
    await serving(driver, options, async ({ url }) => {
      assert.is((await get(url)).status, 503)
    })
    assert.equal(errors, [['ERR_MILLRACE_FUNCTION_TIMEOUT', 'members.account.key(request)']])
  })

  redisTest(`${driver.name}: a group on Redis decides all or nothing`, async () => {
    const store = new Redis(redis.port, '127.0.0.1', { lazyConnect: true })
    const common = { client: store, window: '1h', deadline: '1m' } as const
    const account = createRedisLimiter({ ...common, prefix: `${driver.name} account`, limit: 1 })
    const address = createRedisLimiter({ ...common, prefix: `${driver.name} address`, limit: 5 })
    const members = { account: { limiter: account, key }, address: { limiter: address, key } }
    await serving(driver, { members }, async ({ url, reset }) => {
      assert.is((await get(url)).status, 200)
      const refused = await get(url)
      assert.is(refused.status, 429)
      assert.match(refused.headers.get('ratelimit')!, /^"account";r=0;t=\d+$/)
      assert.is((await address.peek('all')).remaining, 4)
      await reset({ account: 'all' })
      assert.is((await get(url)).status, 200)
    })
    for (const limiter of [account, address]) await limiter.close()
    store.disconnect()
  })

  for (const [onOutage, status] of [
    ['closed', 503],
    ['open', 200],
  ] as const) {
    test(`${driver.name}: a group on a Redis that does not answer, ${onOutage}: ${status}`, async () => {
      const store = new Redis(CLOSED_PORT, '127.0.0.1', { lazyConnect: true })
      const common = { client: store, window: '1h', deadline: '5ms', limit: 2, onOutage } as const
      const limiters = ['account', 'address'].map((prefix) => createRedisLimiter({ ...common, prefix }))
      const [account, address] = limiters
      const members = { account: { limiter: account, key }, address: { limiter: address, key } }
      const errors: unknown[] = []
      const onError = (error: unknown) => errors.push(error)
      await serving(driver, { members, onError }, async ({ url, stats }) => {
        const response = await get(url)
        assert.equal([response.status, response.headers.get('ratelimit')], [status, null])
        const { refused, withoutStore } = await stats()
        const counted = { open: 0, closed: 0, local: 0, [onOutage]: 1 }
        assert.equal([refused, withoutStore], [0, counted])
      })
      const causes = errors.map((error) => (error as MillraceError).code)
      assert.equal(causes, onOutage === 'closed' ? ['ERR_MILLRACE_OUTAGE'] : [])
      for (const error of errors) assert.ok((error as MillraceError).cause !== undefined, 'why is told')
      for (const limiter of limiters) await limiter.close()
      store.disconnect()
    })
  }
}

test.run()
