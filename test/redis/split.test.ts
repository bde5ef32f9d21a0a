// run: also-full
// Keys that are split into parts: each has its part of the limit, and all parts together never admit more.
import { Redis } from 'ioredis'
import {
  createRedisLimiter,
  type RedisLimiter,
  type RedisLimiterOptions,
  type RedisShard,
} from 'millrace/redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { partKey, SplitNames } from '#millrace/redis/shards/split-names.js'
import { KeyNames } from '#millrace/remote/key-names.js'
import { sized } from '../size.js'
import { randomOf } from './exact.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { type ShardServer, withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const WINDOW_MS = 60_000
const RULE = { prefix: 'test', limit: 100, window: WINDOW_MS, deadline: '1m' } as const
const PARTS = 8
/** What 8 parts of 100 admit together. */
const MOST = 8 * 12

const named = ({ name, client }: ShardServer): RedisShard => ({ name, client })

interface Stage {
  readonly limiter: RedisLimiter
  readonly servers: readonly ShardServer[]
  readonly clock: { ms: number }
}

/** Tests a limiter on one server, and over three. */
function splitTest(
  name: string,
  options: Partial<RedisLimiterOptions>,
  act: (stage: Stage) => Promise<void>,
): void {
  for (const count of [1, 3]) {
    test(`${count === 1 ? 'one server' : 'three shards'}: ${name}`, () =>
      withServers(count, async (servers) => {
        const clock = { ms: 1_800_000_000_000 }
        const place = count === 1 ? { client: servers[0]!.client } : { shards: servers.map(named) }
        const limiter = createRedisLimiter({
          ...RULE,
          ...place,
          split: PARTS,
          testTime: () => clock.ms,
          ...options,
        })
        try {
          await limiter.ready()
          await act({ limiter, servers, clock })
        } finally {
          await limiter.close()
        }
      }))
  }
}

/** Calls `check` so often that each part refuses. Returns how many were admitted. */
async function exhaust(limiter: RedisLimiter, key: string, calls = 300): Promise<number> {
  const decided = await Promise.all(Array.from({ length: calls }, () => limiter.check(key)))
  return decided.filter(({ allowed }) => allowed).length
}

splitTest('the parts together admit what their limits add up to', {}, async ({ limiter, servers, clock }) => {
  const first = await limiter.check('hot')
  assert.equal([first.allowed, first.limit, first.remaining, first.source], [true, 100, 11, 'redis'])
  assert.is(await exhaust(limiter, 'hot'), MOST - 1)
  assert.is(await limiter.usage('hot'), MOST)
  const refused = await limiter.check('hot')
  assert.equal([refused.allowed, refused.remaining], [false, 0])
  assert.ok(refused.retryAfterMs <= WINDOW_MS + WINDOW_MS / 60)
  const names = await Promise.all(servers.map(({ server }) => sendOnce(server.port, 'KEYS', '*')))
  assert.equal(
    names.flat().sort(),
    Array.from({ length: PARTS }, (_, part) => `mr:1:test:{%s${part}:hot}:default`),
  )
  clock.ms += 2 * WINDOW_MS
  assert.is(await exhaust(limiter, 'hot'), MOST)
})

splitTest('each method acts on all parts', {}, async ({ limiter }) => {
  const decision = await limiter.check('hot', 3)
  await limiter.penalize('hot', 11)
  assert.is(await limiter.usage('hot'), 14)
  assert.is(await limiter.refund(decision), 3)
  assert.is(await limiter.refund(decision), 0)
  assert.is(await limiter.refund('hot', 7), 7)
  assert.is(await limiter.refund('hot', 7), 4)
  const reservation = await limiter.reserve('hot', 5)
  assert.is(await reservation.commit(2), -3)
  assert.is(await limiter.usage('hot'), 2)
  await limiter.block('hot', '1h')
  assert.is(await exhaust(limiter, 'hot', 50), 0)
  assert.is(await limiter.unblock('hot'), true)
  assert.is(await exhaust(limiter, 'hot'), MOST - 2)
  await limiter.clear('hot')
  assert.is(await limiter.usage('hot'), 0)
  const many = await limiter.checkMany(['hot', 'warm', 'hot'], [5, 2, 4])
  assert.equal([...many.allowed], [1, 1, 1])
  assert.equal([await limiter.usage('hot'), await limiter.usage('warm')], [9, 2])
  await limiter.clearAll()
  assert.equal([await limiter.usage('hot'), await limiter.usage('warm')], [0, 0])
  assert.is((await limiter.peek('hot', 12)).allowed, true)
  assert.equal([(await limiter.check('hot', 13)).retryAfterMs], [Number.POSITIVE_INFINITY])
})

splitTest('random load and time: no window is over', {}, async ({ limiter, clock }) => {
  const random = randomOf(5)
  const admitted: number[] = []
  for (let i = 0; i < sized({ quick: 30, full: 600 }); i++) {
    const atMs = clock.ms
    const count = await exhaust(limiter, 'hot', Math.floor(80 * random()))
    admitted.push(...Array.from({ length: count }, () => atMs))
    clock.ms += Math.floor(random() * (random() < 0.1 ? WINDOW_MS : 10_000))
  }
  const fullest = admitted.map(
    (fromMs) => admitted.filter((ms) => ms >= fromMs && ms < fromMs + WINDOW_MS).length,
  )
  assert.ok(Math.max(...fullest) <= MOST && Math.max(...fullest) > MOST / 2, `${Math.max(...fullest)}`)
})

splitTest(
  'only the keys that are named are split, and the others keep their names',
  { split: { hot: 4, '0:hot': 2 } },
  async ({ limiter, servers }) => {
    assert.is(await exhaust(limiter, 'hot'), 100)
    assert.is(await exhaust(limiter, '0:hot'), 100)
    for (const key of ['cold', '=cold', '1:hot', '%s0:hot', '0:']) {
      assert.is((await limiter.check(key, 100)).allowed, true)
      assert.is((await limiter.check(key)).allowed, false)
    }
    const many = await limiter.checkMany(['warm', 'hot', 'cool', '0:hot', 'warm'], 60)
    assert.equal([...many.allowed], [1, 0, 1, 0, 0])
    const plain = new KeyNames('test', ['default']).of('cold')[0]!
    const found = await Promise.all(servers.map(({ server }) => sendOnce(server.port, 'EXISTS', plain)))
    assert.is(
      found.reduce((sum, exists) => sum + exists),
      1,
    )
  },
)

splitTest(
  'a rule with countRefused counts a refusal once',
  {
    limit: undefined,
    window: undefined,
    rules: [{ name: 'a', limit: 8, window: WINDOW_MS, countRefused: true }],
  } as never,
  async ({ limiter }) => {
    await limiter.penalize('hot', 8)
    assert.is((await limiter.check('hot')).allowed, false)
    assert.is(await limiter.usage('hot'), 9)
  },
)

splitTest('limits that do not give each part a unit are errors by name', {}, async ({ limiter }) => {
  const error = await limiter.check('hot', 1, { limit: 7 }).catch((reason) => reason)
  assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_OPTION', 'limit'])
  assert.is((await limiter.check('hot', 1, { limit: 8 })).limit, 8)
  const changed = await limiter.update('default', { limit: 7 }).catch((reason) => reason)
  assert.equal([changed.code, changed.option], ['ERR_MILLRACE_INVALID_RULE', 'limit'])
  await limiter.update('default', { limit: 16 })
  assert.is(await exhaust(limiter, 'hot'), 15)
})

test('a dead shard takes its parts of a key with it, the others go on', () =>
  withServers(3, async (servers) => {
    const limiter = createRedisLimiter({ ...RULE, shards: servers.map(named), split: PARTS, deadline: 500 })
    try {
      await limiter.ready()
      await limiter.checkMany(Array.from({ length: 60 }, (_, i) => `warm ${i}`))
      await servers[0]!.server.kill()
      const isOpen = async () => {
        await exhaust(limiter, 'any', 50)
        return (await limiter.stats()).shards![0]!.breaker === 'open'
      }
      await poll(isOpen, 'an open breaker')
      const decided = await Promise.all(Array.from({ length: 1_000 }, () => limiter.check('hot')))
      const { shards } = await limiter.stats()
      assert.equal(
        shards!.map(({ breaker }) => breaker),
        ['open', 'closed', 'closed'],
      )
      const admitted = decided.filter(({ allowed, source }) => allowed && source === 'redis').length
      const alive = await Promise.all(
        servers.slice(1).map(({ server }) => sendOnce(server.port, 'KEYS', '*s?:hot*')),
      )
      assert.is(admitted, 12 * alive.flat().length)
      assert.ok(admitted > 0 && admitted < MOST)
    } finally {
      await limiter.close()
    }
  }))

test('a server that stands still: a split key settles by one deadline, and is charged once', () =>
  withServers(1, async ([one]) => {
    const { client, server } = one!
    const limiter = createRedisLimiter({ ...RULE, client, split: PARTS, deadline: 100 })
    try {
      await limiter.ready()
      await limiter.check('hot')
      await server.pause()
      const { allowed, source } = await limiter.check('hot')
      assert.equal([allowed, source], [false, 'outage'])
      server.resume()
      await poll(async () => (await limiter.peek('hot')).source === 'redis', 'the server is back')
      assert.ok((await limiter.usage('hot')) <= 2)
    } finally {
      server.resume()
      await limiter.close()
    }
  }))

any('a part, and any key that looks like one, have different names', () => {
  const names = new SplitNames('api', ['default'])
  const keys = [
    'a',
    '0:a',
    '1:a',
    '=a',
    '==a',
    '=0:a',
    '%s0:a',
    '0:0:a',
    '0:',
    ':',
    '\n',
    '0:\n',
    '{a}',
    'x'.repeat(99),
  ]
  const all = keys.flatMap((key) => [undefined, 0, 1, 10].map((part) => names.of(partKey(key, part))[0]!))
  assert.is(new Set(all).size, all.length)
  const plain = new KeyNames('api', ['default'])
  assert.equal(
    keys.map((key) => names.of(partKey(key, undefined))),
    keys.map((key) => plain.of(key)),
  )
})

const client = new Redis(1, HOST, { lazyConnect: true })
for (const [split, option] of [
  [0, 'split'],
  [1.5, 'split'],
  [1_025, 'split'],
  [101, 'split'],
  ['8', 'split'],
  [null, 'split'],
  [[8], 'split'],
  [{ hot: 0 }, 'split["hot"]'],
  [{ hot: 101 }, 'split["hot"]'],
] as const) {
  any(`refused by name: split ${JSON.stringify(split)}`, () => {
    try {
      createRedisLimiter({ ...RULE, client, split: split as never })
      assert.unreachable()
    } catch (error) {
      const { code, option: named } = error as { code: string; option: string }
      assert.equal([code, named], ['ERR_MILLRACE_INVALID_OPTION', option])
    }
  })
}

test.run()
