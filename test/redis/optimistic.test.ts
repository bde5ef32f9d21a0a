// run: also-full
// `optimistic: true`: a log on Redis that is decided by WATCH and EXEC.
import { Cluster, Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import { createClient } from 'redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const OPTIONS = {
  prefix: 'test',
  limit: 200,
  window: '1h',
  algorithm: 'sliding-log',
  optimistic: true,
} as const

let server: Server
let direct: Redis
let proxy: TcpProxy

test.before(async () => {
  server = await startRedis()
  direct = new Redis(server.port, '127.0.0.1')
  proxy = await startProxy(server.port)
})

test.after(async () => {
  proxy.close()
  direct.disconnect()
  await server.stop()
})

type Connect = (port: number) => Redis | ReturnType<typeof createClient>

const CLIENTS: Readonly<Record<string, Connect>> = {
  ioredis: (port) => new Redis(port, '127.0.0.1', { lazyConnect: true }),
  'node-redis': (port) => createClient({ url: `redis://127.0.0.1:${port}` }) as never,
}

/** Acts with a limiter on an empty server. Afterwards it has left no connection. */
async function scene(
  options: object,
  act: (limiter: RedisLimiter) => Promise<void>,
  connect: Connect,
  port = server.port,
): Promise<void> {
  await direct.flushall()
  const client = connect(port)
  const limiter = createRedisLimiter({ ...OPTIONS, client, ...options })
  try {
    await limiter.ready()
    await act(limiter)
  } finally {
    await limiter.close()
    if (client instanceof Redis) client.disconnect()
  }
  await poll(async () => (await connections()) === 1, 'the end of all connections but that of the test')
}

const connections = async (): Promise<number> =>
  String(await direct.client('LIST'))
    .trim()
    .split('\n').length

/** Commands that the server has run. */
async function callsOf(command: string): Promise<number> {
  const stats = await direct.info('commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

const LIBRARIES = sized({ quick: ['ioredis'], full: Object.keys(CLIENTS) })

for (const library of LIBRARIES) {
  const connect = CLIENTS[library]!
  test(`${library}: no script, and at most five connections, whatever number of calls is under way`, () =>
    scene(
      { deadline: '1m' },
      async (limiter) => {
        const before = [await callsOf('eval'), await callsOf('evalsha')]
        const keys = Array.from({ length: 300 }, (_, i) => `key ${i}`)
        const decided = await Promise.all(keys.map((key) => limiter.check(key, 2)))
        assert.ok(decided.every(({ allowed, remaining }) => allowed && remaining === 198))
        assert.is(await connections(), 1 + 5)
        assert.is(await limiter.refund(decided[0]!), 2)
        await limiter.penalize('key 1', 300)
        assert.not((await limiter.check('key 1')).allowed)
        await limiter.clearAll()
        assert.is(await limiter.usage('key 1'), 0)
        assert.is(await limiter.refund(decided[2]!), 0)
        assert.equal([await callsOf('eval'), await callsOf('evalsha')], before)
      },
      connect,
    ))

  test(`${library}: WATCH with 16 concurrent connections admits exactly the limit, and counts its retries`, async () => {
    await direct.flushall()
    const client = connect(server.port)
    const limiters = Array.from({ length: 16 }, () =>
      createRedisLimiter({ ...OPTIONS, client, limit: 100, deadline: '1m' }),
    )
    try {
      await Promise.all(limiters.map((limiter) => limiter.peek('other')))
      const decided = await Promise.all(
        limiters.flatMap((limiter) => Array.from({ length: 10 }, () => limiter.check('key'))),
      )
      assert.is(decided.filter(({ allowed }) => allowed).length, 100)
      assert.is(decided.filter(({ source }) => source === 'redis').length, 160)
      assert.is(await limiters[0]!.usage('key'), 100)
      const retries = await Promise.all(limiters.map(async (limiter) => (await limiter.stats()).retries))
      const sum = retries.reduce((all, own) => all + own, 0)
      console.log(`${library}: ${sum} retries of 160 calls`)
      assert.ok(sum > 0, `${retries}`)
    } finally {
      await Promise.all(limiters.map((limiter) => limiter.close()))
      if (client instanceof Redis) client.disconnect()
    }
    await poll(async () => (await connections()) === 1, 'the end of all connections but that of the test')
  })

  test(`${library}: calls of one limiter for one key make each other begin anew no time`, () =>
    scene(
      { deadline: '1m' },
      async (limiter) => {
        const decided = await Promise.all(Array.from({ length: 250 }, () => limiter.check('key')))
        assert.equal(
          decided.map(({ allowed }) => allowed),
          decided.map((_, i) => i < 200),
        )
        assert.is((await limiter.stats()).retries, 0)
      },
      connect,
    ))

  test(`${library}: several rules are charged all or none while others change them`, async () => {
    await direct.flushall()
    const client = connect(server.port)
    const rule = { algorithm: 'sliding-log', window: '1h' } as const
    const rules = [
      { name: 'small', limit: 30, ...rule },
      { name: 'large', limit: 50, ...rule },
    ]
    const all = Array.from({ length: 4 }, () =>
      createRedisLimiter({ client, prefix: 'test', rules, optimistic: true, deadline: '1m' }),
    )
    try {
      const decided = await Promise.all(
        Array.from({ length: 80 }, (_, i) => all[i % 4]!.check('key', 1 + (i % 2))),
      )
      const admitted = decided
        .filter(({ allowed }) => allowed)
        .reduce((sum, { rules: [small] }) => sum + (small!.limit > 0 ? 1 : 0), 0)
      assert.ok(admitted > 0)
      assert.is(await all[0]!.usage('key', undefined, { rule: 'small' }), 30)
      assert.is(await all[0]!.usage('key', undefined, { rule: 'large' }), 30)
    } finally {
      await Promise.all(all.map((limiter) => limiter.close()))
      if (client instanceof Redis) client.disconnect()
    }
  })

  test(`${library}: a connection that dies between WATCH and EXEC has charged nothing`, () =>
    scene(
      { deadline: '2s' },
      async (limiter) => {
        await limiter.check('key')
        proxy.cutReplies() // of WATCH and the reads
        const failed = await limiter.penalize('key', 5).catch((reason: unknown) => reason)
        const { code, mayBeCharged } = failed as { code: string; mayBeCharged: boolean }
        assert.equal([code, mayBeCharged], ['ERR_MILLRACE_OUTAGE', false])
        assert.is(await limiter.usage('key'), 1)
      },
      connect,
      proxy.port,
    ))

  test(`${library}: a connection that dies after EXEC may have charged, once`, () =>
    scene(
      { deadline: '2s' },
      async (limiter) => {
        await limiter.check('key')
        proxy.hold()
        const penalty = limiter.penalize('key', 5).catch((reason: unknown) => reason)
        await poll(async () => /cmd=zrange/.test(String(await direct.client('LIST'))), 'the read')
        proxy.release()
        proxy.cutReplies() // of EXEC
        const { code, mayBeCharged } = (await penalty) as { code: string; mayBeCharged: boolean }
        assert.equal([code, mayBeCharged], ['ERR_MILLRACE_OUTAGE', true])
        assert.is(await limiter.usage('key'), 6)
      },
      connect,
      proxy.port,
    ))

  test(`${library}: all connections cut again and again: no call counts twice, none stays open`, () =>
    scene(
      { deadline: '2s', limit: 1_000 },
      async (limiter) => {
        let known = 0
        let unknown = 0
        for (let round = 0; round < 10; round++) {
          const calls = Array.from({ length: 10 }, (_, i) => limiter.check(`key ${i}`))
          if (round % 2 === 0) proxy.cutReplies(2)
          else proxy.cutRequests(2)
          for (const { source } of await Promise.all(calls)) source === 'redis' ? known++ : unknown++
          await poll(async () => (await limiter.peek('other')).source === 'redis', 'the recovery')
        }
        let used = 0
        for (let i = 0; i < 10; i++) used += await limiter.usage(`key ${i}`)
        assert.ok(unknown > 0, 'some were cut')
        assert.ok(used >= known && used <= known + unknown, `${known} <= ${used} <= ${known + unknown}`)
      },
      connect,
      proxy.port,
    ))

  test(`${library}: a call that others' changes never let finish is an outage at its deadline`, () =>
    scene(
      { deadline: '250ms' },
      async (limiter) => {
        await limiter.check('key')
        proxy.beforeRequests(() => direct.expire('mr:1:test:{key}:default', 3_600))
        const error = await limiter.penalize('key', 1).catch((reason: unknown) => reason)
        assert.is((error as { code: string }).code, 'ERR_MILLRACE_OUTAGE')
        assert.ok((await limiter.stats()).retries > 0)
        // A try may be on its way at the deadline. It must meet a change, too, and this comes after it.
        await poll(async () => (await limiter.peek('key')).source === 'redis', 'an answer after the last try')
        proxy.restore()
        const { allowed, remaining } = await limiter.check('key')
        assert.equal([allowed, remaining], [true, 198])
      },
      connect,
      proxy.port,
    ))

  test(`${library}: a server that stands still: an outage at the deadline, and a recovery`, () =>
    scene(
      { deadline: '250ms' },
      async (limiter) => {
        await limiter.check('key')
        await server.pause()
        for (let i = 0; i < 5; i++) assert.is((await limiter.check('key')).source, 'outage')
        const decided = await Promise.all(Array.from({ length: 50 }, () => limiter.check('key')))
        assert.ok(decided.every(({ source }) => source === 'outage'))
        server.resume()
        await poll(async () => (await limiter.peek('key')).source === 'redis', 'the recovery')
        assert.is(await limiter.usage('key'), 1, 'the server has met no EXEC')
      },
      connect,
    ))
}

any('a Cluster, a connection that is not its own, and other algorithms are refused by name', () => {
  const client = new Redis(1, '127.0.0.1', { lazyConnect: true })
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true })
  for (const [options, option] of [
    [{ optimistic: 'yes' }, 'optimistic'],
    [{ algorithm: 'sliding-counter' }, 'optimistic'],
    [{ algorithm: undefined }, 'optimistic'],
    [{ ownConnection: false }, 'ownConnection'],
    [{ client: cluster }, 'optimistic'],
  ] as const) {
    try {
      createRedisLimiter({ ...OPTIONS, client, ...(options as object) })
      assert.unreachable(option)
    } catch (error) {
      const { code, option: named } = error as { code: string; option: string }
      assert.equal([code, named], ['ERR_MILLRACE_INVALID_OPTION', option])
    }
  }
  cluster.disconnect()
})

test.run()
