// run: full
// A limiter by each version of the client libraries that the peer ranges admit at their ends.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import type { MillraceError } from 'millrace'
import { type ConfigChange, redisConfig } from 'millrace/config/redis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { root } from '../package/root.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { startProxy } from './proxy.js'
import { leavingNothing } from './resources.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { VERSIONS } from './versions.js'
import { sendOnce } from './wire.js'

const limiterOf = (client: RedisLimiterOptions['client'], options: Partial<RedisLimiterOptions> = {}) =>
  createRedisLimiter({ client, prefix: 'test', limit: 1_000_000, window: '1h', ...options })

async function use(limiter: RedisLimiter, act: (limiter: RedisLimiter) => Promise<void>): Promise<void> {
  try {
    await act(limiter)
  } finally {
    await limiter.close()
  }
}

const decided = (limiter: RedisLimiter) =>
  poll(async () => (await limiter.peek('any')).source === 'redis', 'a decision of Redis')

let server: Server
test.before(async () => {
  server = await startRedis()
})
test.after(() => server.stop())

test('the versions are the ends of the peer ranges', () => {
  const { peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const library of ['ioredis', 'redis']) {
    const majors = (peerDependencies[library] as string).split(' || ')
    const versions = VERSIONS.filter((each) => each.library === library).map(({ version }) => version)
    for (const major of majors) assert.ok(versions.includes(`${major}.0.0`), `${library} ${major}.0.0`)
    assert.equal([...new Set(versions.map((version) => version.split('.')[0]))], majors)
  }
})

for (const clients of VERSIONS) {
  const name = `${clients.library} ${clients.version}`
  const prefix = name.replace(' ', '-')

  test(`${name}: decides, gives back, forgets, and leaves nothing`, () =>
    leavingNothing(() =>
      use(limiterOf(clients.single(server.port), { prefix, limit: 3 }), async (limiter) => {
        await limiter.ready()
        const decision = await limiter.check('a', 3)
        assert.equal([decision.source, decision.allowed], ['redis', true])
        assert.is((await limiter.check('a')).allowed, false)
        assert.is(await limiter.refund(decision), 3)
        const { allowed } = await limiter.checkMany(['a', 'b', 'a', 'a', 'a'])
        assert.equal([...allowed], [1, 1, 1, 1, 0])
        await limiter.clearAll()
        assert.is(await limiter.usage('a'), 0)
      }),
    ))

  test(`${name}: by transactions`, () =>
    use(
      limiterOf(clients.single(server.port), {
        prefix: `${prefix}-log`,
        limit: 3,
        algorithm: 'sliding-log',
        optimistic: true,
        deadline: '10s',
      }),
      async (limiter) => {
        await limiter.ready()
        const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.check('a')))
        assert.is(decisions.filter(({ allowed }) => allowed).length, 3)
      },
    ))

  if (clients.library === 'ioredis')
    test(`${name}: the configuration store`, async () => {
      const client = clients.single(server.port) as Redis
      const store = redisConfig({ client, prefix, deadlineMs: 30_000 })
      const other = redisConfig({ client, prefix, deadlineMs: 30_000 })
      try {
        await other.put('a', { limit: 1, window: '1m' })
        const seen: ConfigChange[] = []
        store.watch((change) => void seen.push(change))
        await poll(() => seen.length > 0, 'the subscription')
        const put = await other.put('a', { limit: 5, window: '1m' })
        await poll(() => seen.some(({ keys }) => keys?.includes('a')), 'the change')
        assert.equal(await store.get('a'), put)
        assert.equal(await store.list(), [put])
        assert.is(await store.delete('a', { ifVersion: put.version }), true)
        assert.is(await store.count?.(), 0)
      } finally {
        await store.close()
        client.disconnect()
      }
    })

  test(`${name}: a wrong password rejects ready by name`, async () => {
    const locked = await startRedis({ args: ['--requirepass', 'right'] })
    try {
      for (const [password, value] of [
        ['wrong', 'WRONGPASS'],
        [undefined, 'NOAUTH'],
      ] as const)
        await use(limiterOf(clients.single(locked.port, password)), async (limiter) => {
          const error: MillraceError = await limiter.ready().then(
            () => assert.unreachable('resolved'),
            (reason) => reason,
          )
          assert.equal([error.code, error.value], ['ERR_MILLRACE_OUTAGE', value])
        })
      await use(limiterOf(clients.single(locked.port, 'right')), async (limiter) => {
        await limiter.ready()
        await decided(limiter)
      })
    } finally {
      await locked.stop()
    }
  })

  test(`${name}: a lost request and a lost reply count once at most`, async () => {
    const proxy = await startProxy(server.port)
    const options = { prefix: `${prefix}-lost`, deadline: '10s' } as const
    try {
      await use(limiterOf(clients.single(proxy.port), options), async (limiter) => {
        await limiter.ready()
        const charged = { replies: 1, requests: 0 }
        for (const lost of ['replies', 'requests'] as const) {
          await decided(limiter)
          const before = await limiter.usage('key')
          if (lost === 'replies') proxy.cutReplies()
          else proxy.cutRequests()
          assert.is((await limiter.check('key')).source, 'outage')
          proxy.restore()
          await decided(limiter)
          assert.is(await limiter.usage('key'), before + charged[lost], lost)
        }
      })
    } finally {
      proxy.close()
    }
  })

  test(`${name}: back after a server that stood still, and after READONLY when another one has the address`, async () => {
    const [old, next] = [await startRedis(), await startRedis()]
    const proxy = await startProxy(old.port)
    try {
      await use(limiterOf(clients.single(proxy.port)), async (limiter) => {
        await limiter.ready()
        await decided(limiter)
        old.pause()
        await poll(async () => (await limiter.check('any')).source === 'outage', 'an outage')
        old.resume()
        await decided(limiter)
        await sendOnce(old.port, 'REPLICAOF', HOST, next.port)
        await poll(async () => (await limiter.check('any')).source === 'outage', 'READONLY')
        proxy.point(next.port)
        await decided(limiter)
        await limiter.check('here')
        assert.ok((await sendOnce(next.port, 'DBSIZE')) > 0)
      })
    } finally {
      proxy.close()
      await Promise.all([old.stop(), next.stop()])
    }
  })
}

test.run()
