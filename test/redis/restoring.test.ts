// What processes restore after Redis has lost a key, and when they restore nothing.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { AsyncReservation } from 'millrace'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const START_MS = 1_800_000_000_000

interface Scene {
  readonly server: Server
  readonly client: Redis
  /** In a test's time. */
  readonly advance: (ms: number) => void
  /** Another process with the same rule. */
  readonly node: () => RedisLimiter
}

/** A bucket of 20 in 60 s gets one back in 3 s; the others have a window. */
const ALGORITHMS = [
  'sliding-window',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
  'sliding-log',
  'sliding-counter',
] as const
const isBucket = (algorithm: string) => algorithm === 'token-bucket' || algorithm === 'leaky-bucket'

async function scene(options: Partial<RedisLimiterOptions>, act: (scene: Scene) => Promise<void>) {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-restoring-'))
  const server = await startRedis({ dir })
  const client = new Redis(server.port, '127.0.0.1')
  const all: RedisLimiter[] = []
  let nowMs = START_MS
  const node = () => {
    const limiter = createRedisLimiter({
      ...{ client, prefix: 'test', limit: 20, window: '1m', deadline: '1m', testTime: () => nowMs },
      ...options,
    })
    all.push(limiter)
    return limiter
  }
  const advance = (ms: number) => {
    nowMs += ms
  }
  try {
    await act({ server, client, advance, node })
  } finally {
    await Promise.all(all.map((limiter) => limiter.close()))
    client.disconnect()
    await server.stop()
    rmSync(dir, { recursive: true })
  }
}

const restored = (limiter: RedisLimiter) => limiter.stats().then((stats) => stats.restored)

/** How often Redis has run a script. */
async function scriptCalls(client: Redis): Promise<number> {
  const stats = await client.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

for (const algorithm of ALGORITHMS) {
  test(`${algorithm}: after a flush each process sends its own charges again, once, in one call`, () =>
    scene({ algorithm }, async ({ client, advance, node }) => {
      const [first, second] = [node(), node()]
      await first.check('key', 3)
      await second.check('key', 5)
      advance(2_000)
      await first.check('key', 2)
      const before = await first.usage('key')
      await client.flushall()
      const calls = await scriptCalls(client)
      await first.peek('key')
      await second.peek('key')
      await poll(async () => (await restored(second)) === 1, 'the second process restores')
      assert.is((await scriptCalls(client)) - calls, 4, 'two peeks, two calls that restore')
      const after = await first.usage('key')
      // Each process rounds the level of its bucket up to a whole token.
      assert.ok(after >= before && after <= before + (isBucket(algorithm) ? 2 : 0), `${before} ${after}`)
      await first.peek('key')
      await second.peek('key')
      await first.check('key', 0)
      assert.equal([await restored(first), await restored(second)], [1, 1])
    }))

  test(`${algorithm}: nothing is restored of charges that have left`, () =>
    scene({ algorithm }, async ({ client, advance, node }) => {
      const limiter = node()
      await limiter.check('key', 20)
      advance(algorithm === 'sliding-counter' ? 121_000 : 61_000) // a window and a granule
      await client.flushall()
      assert.ok((await limiter.check('key', 20)).allowed)
      await limiter.peek('key')
      assert.is(await restored(limiter), 0)
    }))

  test(`${algorithm}: clear, clearAll and refunds of another process are no loss`, () =>
    scene({ algorithm }, async ({ node }) => {
      const [first, second] = [node(), node()]
      const changes = [() => second.clear('key'), () => second.clearAll(), () => second.refund('key', 20)]
      for (const change of changes) {
        assert.ok((await first.check('key', 20)).allowed)
        await change()
        assert.ok((await first.check('key', 20)).allowed)
        await change()
        assert.is((await first.peek('key')).remaining, 20)
      }
      assert.is(await restored(first), 0)
    }))
}

for (const algorithm of ALGORITHMS) {
  test(`${algorithm}: a value that has got less lasts as long as before, also when it is charged`, () =>
    scene({ algorithm, limit: 100, window: '1h', testTime: undefined } as never, async ({ client, node }) => {
      const [first, second] = [node(), node()]
      const changes: Readonly<Record<string, (reserved: AsyncReservation) => Promise<unknown>>> = {
        cancelled: (reserved) => reserved.cancel(),
        refunded: () => first.refund('refunded', 90),
        cleared: () => first.clear('cleared'),
      }
      for (const [key, change] of Object.entries(changes)) {
        const reserved = await first.reserve(key, 90)
        await second.check(key) // it expects the value for as long as all 91 count
        await change(reserved)
        const beforeMs = await client.pttl(`mr:1:test:{${key}}:default`)
        await first.check(key)
        const afterMs = await client.pttl(`mr:1:test:{${key}}:default`)
        // A fixed window by the clock may end at any time.
        if (algorithm !== 'fixed-window') assert.ok(beforeMs > 1_800_000, `${key}: ${beforeMs} ms`)
        assert.ok(beforeMs - afterMs < 600_000, `${key}: ${beforeMs} ms, then ${afterMs} ms`)
      }
      assert.equal([await restored(first), await restored(second)], [0, 0])
    }))
}

test('token-bucket: a value that has expired after a step back of the time is no loss', () =>
  scene({ algorithm: 'token-bucket', limit: 1, window: 10 }, async ({ advance, node }) => {
    const limiter = node()
    advance(20)
    await limiter.peek('key')
    advance(-20)
    assert.ok((await limiter.check('key')).allowed)
    advance(12)
    assert.ok((await limiter.check('key')).allowed)
    advance(10)
    assert.ok((await limiter.check('key')).allowed)
    assert.is(await restored(limiter), 0)
  }))

test('what was given back before the loss is not restored', () =>
  scene({}, async ({ client, advance, node }) => {
    const limiter = node()
    await limiter.check('key', 3)
    const decision = await limiter.check('key', 5)
    await limiter.refund(decision)
    advance(1)
    await client.flushall()
    await limiter.peek('key')
    await poll(async () => (await restored(limiter)) === 1, 'the process restores')
    assert.is(await limiter.usage('key'), 3)
  }))

test('restored units have their ages, in each of several rules', () =>
  scene(
    {
      limit: undefined,
      window: undefined,
      rules: [
        { name: 'minute', limit: 20, window: '1m' },
        { name: 'second', limit: 4, window: '1s', granularity: '100ms' },
      ],
    } as never,
    async ({ client, advance, node }) => {
      const limiter = node()
      await limiter.check('key', 4)
      advance(30_000)
      await limiter.check('key', 3)
      await client.flushall()
      await limiter.peek('key')
      await poll(async () => (await restored(limiter)) === 1, 'the process restores')
      const used = async (rule: string, ms: number) => limiter.usage('key', ms, { rule })
      assert.equal([await used('minute', 60_000), await used('minute', 10_000)], [7, 3])
      assert.is(await used('second', 1_000), 3)
      advance(31_000)
      assert.equal([await used('minute', 60_000), await used('second', 1_000)], [3, 0])
    },
  ))

test('an empty restart: the limit holds again once each process has asked', () =>
  scene({ testTime: undefined } as never, async ({ server, node }) => {
    const nodes = Array.from({ length: 4 }, node)
    for (const limiter of nodes) await limiter.check('key', 5)
    await server.kill()
    await server.restart()
    await Promise.all(
      nodes.map((limiter) => poll(async () => (await limiter.peek('other')).source === 'redis', 'Redis')),
    )
    for (const limiter of nodes) await limiter.peek('key')
    await poll(async () => (await nodes[0]!.usage('key')) === 20, 'all have restored')
    assert.not((await nodes[1]!.check('key')).allowed)
  }))

test('a failover to a copy that lags: keys that it does not have are restored in one call of each process', () =>
  scene({ limit: 1_000, window: '10m', testTime: undefined } as never, async ({ server, client, node }) => {
    const nodes = Array.from({ length: 4 }, node)
    const charge = (names: readonly string[]) =>
      Promise.all(nodes.flatMap((limiter) => names.map((name) => limiter.check(name, 2))))
    const used = async (names: readonly string[]) => {
      const all = await Promise.all(names.map((name) => nodes[0]!.usage(name)))
      return all.reduce((sum, units) => sum + units, 0)
    }
    const early = Array.from({ length: 50 }, (_, i) => `early ${i}`)
    const late = Array.from({ length: 50 }, (_, i) => `late ${i}`)
    await charge(early)
    await client.save() // what a replica has; the rest has not reached it
    await charge(late)
    await charge(early)
    await server.kill()
    await server.restart()
    await Promise.all(
      nodes.map((limiter) => poll(async () => (await limiter.peek('other')).source === 'redis', 'Redis')),
    )
    const lost = { early: 2 * 8 * 50 - (await used(early)), late: 8 * 50 - (await used(late)) }
    console.log('units lost by the failover', lost)
    assert.equal(lost, { early: 8 * 50, late: 8 * 50 })
    const calls = await scriptCalls(client)
    await Promise.all(nodes.flatMap((limiter) => late.map((name) => limiter.peek(name))))
    await poll(async () => (await used(late)) === 8 * 50, 'all have restored')
    // Redis may have the last charges before the last reply has arrived.
    for (const limiter of nodes) {
      await poll(async () => (await restored(limiter)) >= 50, 'the process has its replies')
      assert.is(await restored(limiter), 50)
    }
    assert.ok((await scriptCalls(client)) >= calls + 4 * 50, 'a call for each key of each process')
    // A value that the copy has bears the birth that all know: what it lacks stays lost.
    await charge(early.slice(0, 1))
    assert.is(await used(early.slice(0, 1)), 16)
  }))

test.run()
