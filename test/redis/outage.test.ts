// What a limiter on Redis does while the server does not answer, and afterwards.
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { CLIENTS, LIBRARIES } from './clients.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

type Made = ReturnType<typeof createRedisLimiter>

/** The deadline is long enough for a busy machine. */
const RULE = { prefix: 'test', limit: 4, window: '1h', deadline: '500ms' } as const

/** Tests with a server and a limiter of 4 an hour. The client itself is never connected. */
function outageTest(
  name: string,
  options: Partial<RedisLimiterOptions>,
  act: (limiter: Made, server: Server) => Promise<void>,
): void {
  for (const library of LIBRARIES) {
    test(`${library}: ${name}`, async () => {
      const server = await startRedis()
      const client = CLIENTS[library](server.port)
      const limiter = createRedisLimiter({ client, ...RULE, ...options })
      try {
        await limiter.ready()
        await recovered(limiter)
        await act(limiter, server)
      } finally {
        await limiter.close()
        await server.stop()
      }
    })
  }
}

/** Peeks until Redis decides again. */
async function recovered(limiter: Made): Promise<void> {
  while ((await limiter.peek('any')).source !== 'redis')
    await new Promise((resolve) => setTimeout(resolve, 10))
}

outageTest(
  'a server that stands still: a refusal by outage, at once after five',
  { deadline: '100ms' },
  async (limiter, server) => {
    await limiter.check('key')
    const before = await limiter.stats()
    await server.pause()
    for (let i = 0; i < 5; i++) {
      const { allowed, source, retryAfterMs } = await limiter.check('key')
      assert.equal([allowed, source, retryAfterMs], [false, 'outage', 1_000])
    }
    const decided = await Promise.all(Array.from({ length: 100 }, () => limiter.check('key')))
    assert.ok(decided.every(({ source }) => source === 'outage'))
    const batch = await limiter.checkMany(['key', 'other'])
    assert.equal([...batch.allowed, batch.source(0), batch.source(1)], [0, 0, 'outage', 'outage'])
    const thrown = await limiter.checkOrThrow('key').catch((reason) => reason)
    assert.is(thrown.message, 'not decided: the store does not answer; retry after 1 s')
    assert.equal([thrown.code, thrown.decision.source], ['ERR_MILLRACE_LIMITED', 'outage'])
    const { denied, outages, withoutStore, lastFailure } = await limiter.stats()
    assert.equal([denied - before.denied, outages - before.outages], [0, 107])
    assert.equal(withoutStore, { open: 0, closed: before.withoutStore.closed + 108, local: 0 })
    assert.match(lastFailure!, /deadline/)
    const error = await limiter.clear('key').catch((reason) => reason)
    assert.is(error.code, 'ERR_MILLRACE_OUTAGE')
    server.resume()
    await recovered(limiter)
    // The server has run the five calls when it went on: nobody had an answer, but they count.
    assert.ok((await limiter.usage('key')) >= 4)
  },
)

outageTest('open: all are allowed, and nothing is counted', { onOutage: 'open' }, async (limiter, server) => {
  await server.kill()
  for (let i = 0; i < 20; i++) {
    const { allowed, source, remaining } = await limiter.check('key')
    assert.equal([allowed, source, remaining], [true, 'outage', 4])
  }
  const batch = await limiter.checkMany(['key'])
  assert.equal([batch.allowed[0], batch.source(0)], [1, 'outage'])
  await server.restart()
  await recovered(limiter)
  assert.is(await limiter.usage('key'), 0)
})

outageTest(
  'local: the share of the limit, less what Redis had admitted, and a report afterwards',
  { limit: 8, onOutage: 'local', nodes: 2 },
  async (limiter, server) => {
    await limiter.check('key', 2)
    await server.kill()
    const decided = []
    for (let i = 0; i < 6; i++) decided.push(await limiter.check('key'))
    assert.ok(decided.every(({ source }) => source === 'local'))
    assert.equal(
      decided.map(({ allowed }) => allowed),
      [true, true, false, false, false, false],
    )
    assert.is((await limiter.stats()).local, 6)
    const batch = await limiter.checkMany(['key'])
    assert.equal([batch.allowed[0], batch.source(0)], [0, 'local'])
    await server.restart() // empty: it has lost the first two, and the report shows it
    await recovered(limiter)
    while ((await limiter.usage('key')) < 4) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.is(await limiter.usage('key'), 4)
  },
)

outageTest(
  "local: a cost above this process's share is refused as by an outage, one above the limit for ever",
  { onOutage: 'local', nodes: 4 },
  async (limiter, server) => {
    await server.kill()
    const within = await limiter.check('key', 2)
    assert.equal([within.allowed, within.source, within.retryAfterMs], [false, 'outage', 1_000])
    assert.is((await limiter.check('key', 1)).source, 'local')
    const above = await limiter.check('key', 5)
    assert.equal(
      [above.allowed, above.source, above.retryAfterMs],
      [false, 'local', Number.POSITIVE_INFINITY],
    )
    await server.restart()
    await recovered(limiter)
    assert.ok((await limiter.check('key', 2)).allowed)
  },
)

outageTest('a server that has forgotten the script learns it again', {}, async (limiter, server) => {
  await limiter.check('key')
  const other = new Redis(server.port, '127.0.0.1')
  try {
    await other.script('FLUSH')
    const decided = await Promise.all(Array.from({ length: 10 }, () => limiter.check('key')))
    assert.is(decided.filter(({ allowed }) => allowed).length, 3)
    assert.ok(decided.every(({ source }) => source === 'redis'))
  } finally {
    other.disconnect()
    await once(other, 'end')
  }
})

outageTest('close waits for the calls under way, and they settle', {}, async (limiter, server) => {
  await server.pause()
  const calls = Promise.all([limiter.check('key'), limiter.peek('key')])
  await limiter.close()
  for (const { source } of await calls) assert.is(source, 'outage')
  server.resume()
})

test('a server that starts later is found', async () => {
  const server = await startRedis()
  await server.kill()
  const client = new Redis(server.port, '127.0.0.1', { lazyConnect: true })
  const limiter = createRedisLimiter({ client, ...RULE })
  try {
    assert.is((await limiter.check('key')).source, 'outage')
    await server.restart()
    await limiter.ready()
    assert.is((await limiter.check('key')).source, 'redis')
  } finally {
    await limiter.close()
    await server.stop()
  }
})

for (const [setting, expected] of [
  [['--maxmemory-policy', 'allkeys-lru'], 'maxmemory-policy'],
  [['--replicaof', '127.0.0.1 1'], 'client'],
] as const) {
  test(`a server that can't keep counts is refused by name: ${setting.join(' ')}`, async () => {
    const server = await startRedis({ args: [...setting] })
    const client = new Redis(server.port, '127.0.0.1', { lazyConnect: true })
    const limiter = createRedisLimiter({ client, ...RULE })
    try {
      for (const act of [() => limiter.ready(), () => limiter.check('key')]) {
        const error = await act().catch((reason) => reason)
        assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_OPTION', expected])
      }
    } finally {
      await limiter.close()
      await server.stop()
    }
  })
}

test.run()
