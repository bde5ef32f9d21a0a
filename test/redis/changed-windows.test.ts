// run: once
// `update` with another window on Redis: what goes along with the key, and what refuses it.
import { Redis } from 'ioredis'
import { group } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest } from './skip.js'

let redis: Server
redisTest.before(async () => {
  redis = await startRedis()
})
redisTest.after(() => redis.stop())

let prefixes = 0
let nowMs = 60_000_000
const clientOf = () => new Redis(redis.port, HOST, { lazyConnect: true })
const FIVE = { limit: 5, window: '1m' } as const

/** Two limiters on the same counts, as of two processes. */
async function withTwo(
  own: Partial<RedisLimiterOptions>,
  act: (first: ReturnType<typeof createRedisLimiter>, second: typeof first) => Promise<void>,
): Promise<void> {
  const place = own.shards === undefined ? { client: clientOf() } : {}
  const options = {
    ...place,
    prefix: `p${++prefixes}`,
    deadline: '1m',
    testTime: () => nowMs,
    ...FIVE,
  } as const
  const limiters = [createRedisLimiter({ ...options, ...own }), createRedisLimiter({ ...options, ...own })]
  try {
    await act(limiters[0]!, limiters[1]!)
  } finally {
    for (const limiter of limiters) await limiter.close()
  }
}

const codeOf = async (act: () => unknown): Promise<unknown> => {
  try {
    await act()
    return undefined
  } catch (error) {
    return (error as { code: string }).code
  }
}

redisTest('what a process admits before it calls `update` counts for the others when it has', () =>
  withTwo({}, async (first, second) => {
    await first.check('a', 2)
    await first.update('default', { window: '1h', limit: 8 })
    await second.check('a', 3)
    assert.equal([(await first.peek('a')).remaining, (await second.peek('a')).remaining], [6, 0])
    await second.update('default', { window: '1h', limit: 8 })
    assert.equal([(await first.peek('a')).remaining, (await second.peek('a')).remaining], [3, 3])
    nowMs += 3_540_000
    assert.not((await first.check('a', 4)).allowed)
  }),
)

for (const name of ['short', 'long '.repeat(200)])
  redisTest(`a ${name.slice(0, 5)} key takes along what others have charged, to and fro`, () =>
    withTwo({}, async (first, second) => {
      await second.check(name, 4)
      for (const window of ['1h', '2m', '1m', '1h'] as const) {
        await first.update('default', { window })
        assert.is(await first.usage(name), 4, window)
      }
      assert.not((await first.check(name, 2)).allowed)
      assert.ok((await first.check(name)).allowed)
    }),
  )

redisTest('handles, decisions, figures and statistics of before go on', () =>
  withTwo({}, async (limiter) => {
    const handle = limiter.handle('a')
    const [kept, given] = [await limiter.check(handle, 2), await limiter.check('b', 3)]
    await limiter.update('default', { window: '1h' })
    assert.is(limiter.rule.windowMs, 3_600_000)
    assert.is((await limiter.check(handle)).remaining, 2)
    assert.equal([await limiter.refund(kept), await limiter.refund(given)], [2, 3])
    const stats = await limiter.stats()
    assert.equal([stats.allowed, stats.store, 'config' in stats], [3, 'redis', false])
    await limiter.clear('a')
    assert.is((await limiter.peek('a')).remaining, 5)
  }),
)

redisTest('a pending `wait` goes on in the new window', () =>
  withTwo({}, async (limiter) => {
    await limiter.check('a', 5)
    const waiting = limiter.wait('a', { cost: 3 })
    await limiter.update('default', { window: '1h', limit: 10 })
    assert.equal([(await waiting).limit, await limiter.usage('a')], [10, 8])
  }),
)

redisTest(
  'a limit of which not each process, or each part, has a unit is refused with another window',
  async () => {
    await withTwo({ onOutage: 'local', nodes: 4 }, async (limiter) => {
      const code = await codeOf(() => limiter.update('default', { window: '1h', limit: 3 }))
      assert.equal([code, limiter.rule.windowMs], ['ERR_MILLRACE_INVALID_RULE', 60_000])
    })
    await withTwo({ split: 4 }, async (limiter) => {
      await limiter.check('a', 1)
      const code = await codeOf(() => limiter.update('default', { window: '1h', limit: 3 }))
      assert.equal([code, limiter.rule.windowMs], ['ERR_MILLRACE_INVALID_RULE', 60_000])
      await limiter.update('default', { window: '1h' })
      assert.is(await limiter.usage('a'), 1)
    })
  },
)

redisTest('a limiter in a group keeps its window, and one with another window joins none', () =>
  withTwo({}, async (first, second) => {
    group({ first })
    assert.is(await codeOf(() => first.update('default', { window: '1h' })), 'ERR_MILLRACE_INVALID_OPTION')
    await first.update('default', { limit: 6, window: '1m' })
    await second.update('default', { window: '1h' })
    assert.is(await codeOf(() => group({ second })), 'ERR_MILLRACE_INVALID_OPTION')
  }),
)

redisTest('shards change before the window or not at all', async () => {
  const shards = [{ name: 'one', client: clientOf() }]
  await withTwo({ shards }, async (first, second) => {
    await first.check('a', 2)
    await first.update('default', { window: '1h' })
    assert.is(await first.usage('a'), 2)
    assert.is(await codeOf(() => first.reshard(shards)), 'ERR_MILLRACE_INVALID_OPTION')
    await second.reshard(shards)
    assert.is(await codeOf(() => second.update('default', { window: '1h' })), 'ERR_MILLRACE_INVALID_OPTION')
  })
})

redisTest('a 65th window is refused, and 64 are not', () =>
  withTwo({ algorithm: 'fixed-window' }, async (limiter) => {
    for (let i = 1; i < 64; i++) await limiter.update('default', { window: 60_000 + i })
    await limiter.update('default', { window: '1m' })
    assert.is(await codeOf(() => limiter.update('default', { window: '1h' })), 'ERR_MILLRACE_INVALID_RULE')
    assert.is(limiter.rule.windowMs, 60_000)
  }),
)

test.run()
redisTest.run()
