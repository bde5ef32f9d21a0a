// Changes of the list of servers: keys that move are charged at both servers until the change is over.
import { Redis } from 'ioredis'
import {
  createRedisLimiter,
  type RedisLimiter,
  type RedisLimiterOptions,
  type RedisShard,
} from 'millrace/redis'
import * as assert from 'uvu/assert'
import { Rendezvous } from '#millrace/redis/rendezvous.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { keysThat, type ShardServer, withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const WINDOW_MS = 60_000
const GRANULE_MS = 1_000
/** A unit counts for so long at most. */
const COUNTS_MS = WINDOW_MS + GRANULE_MS
const RULE = {
  prefix: 'test',
  limit: 10,
  window: WINDOW_MS,
  granularity: GRANULE_MS,
  deadline: '1m',
} as const
/** A change takes so long: the deadline and changeWithin are in it. */
const CHANGE_MS = COUNTS_MS + 60_000 + GRANULE_MS
const START_MS = 1_800_000_000_000

const named = ({ name, client }: ShardServer): RedisShard => ({ name, client })
const over = (servers: readonly ShardServer[]) =>
  new Rendezvous(servers.map((server) => [server.name, server] as const))

interface Stage {
  readonly servers: readonly ShardServer[]
  readonly clock: { ms: number }
  /** Makes a limiter over the first `count` servers. */
  make(count: number, options?: Partial<RedisLimiterOptions>): RedisLimiter
  /** A key that is on server `from` of the first `before` servers, and on server `to` of the first `after`. */
  moving(before: number, after: number): string
}

/** Tests with servers and a clock that the test turns. */
function reshardTest(name: string, count: number, act: (stage: Stage) => Promise<void>): void {
  test(name, () =>
    withServers(count, async (servers) => {
      const clock = { ms: START_MS }
      const limiters: RedisLimiter[] = []
      const stage: Stage = {
        servers,
        clock,
        make(first, options = {}) {
          const shards = servers.slice(0, first).map(named)
          const limiter = createRedisLimiter({
            ...RULE,
            shards,
            changeWithin: GRANULE_MS,
            testTime: () => clock.ms,
            ...options,
          })
          limiters.push(limiter)
          return limiter
        },
        moving: (before, after) =>
          keysThat(
            (key) => over(servers.slice(0, before)).find(key) !== over(servers.slice(0, after)).find(key),
          )[0]!,
      }
      try {
        await act(stage)
      } finally {
        for (const limiter of limiters) await limiter.close()
      }
    }),
  )
}

const usedAt = async ({ server }: ShardServer, key: string): Promise<number> => {
  const client = new Redis(server.port, HOST)
  const limiter = createRedisLimiter({ ...RULE, client, testTime: () => START_MS })
  try {
    return await limiter.usage(key)
  } finally {
    await limiter.close()
    client.disconnect()
  }
}

reshardTest(
  'a key that moves is charged at both servers, and its old charges count',
  3,
  async ({ servers, make, moving }) => {
    const limiter = make(2)
    const key = moving(2, 3)
    await limiter.check(key, 4)
    await limiter.reshard(servers.map(named))
    const decision = await limiter.check(key, 5)
    assert.equal([decision.allowed, decision.remaining], [true, 1])
    const old = over(servers.slice(0, 2)).find(key)
    assert.equal([await usedAt(old, key), await usedAt(servers[2]!, key)], [9, 5])
    assert.is((await limiter.check(key, 2)).allowed, false)
    assert.equal([await usedAt(old, key), await usedAt(servers[2]!, key)], [9, 5])
    assert.is(await limiter.usage(key), 9)
    assert.is(await limiter.refund(decision), 5)
    assert.equal([await usedAt(old, key), await usedAt(servers[2]!, key)], [4, 0])
  },
)

reshardTest(
  'what the new server refuses is given back at the old one',
  3,
  async ({ servers, clock, make, moving }) => {
    const ahead = make(3)
    const behind = make(2)
    const key = moving(2, 3)
    await ahead.check(key, 8) // only at the new server
    await behind.reshard(servers.map(named))
    const decision = await behind.check(key, 3)
    assert.equal([decision.allowed, decision.remaining], [false, 2])
    assert.is(decision.retryAfterMs, COUNTS_MS - (clock.ms % GRANULE_MS))
    assert.is(await usedAt(over(servers.slice(0, 2)).find(key), key), 0)
    const many = await behind.checkMany([key, key, key])
    assert.equal([...many.allowed], [1, 1, 0])
  },
)

reshardTest(
  'keys that stay are charged once, and other servers are not asked',
  3,
  async ({ servers, make }) => {
    const limiter = make(2)
    await limiter.reshard(servers.map(named))
    const [key] = keysThat(
      (each) =>
        over(servers.slice(0, 2)).find(each) === servers[0] && over(servers).find(each) === servers[0],
    ) as [string]
    await limiter.check(key)
    for (const { server } of servers.slice(1)) assert.is(await sendOnce(server.port, 'DBSIZE'), 0)
  },
)

reshardTest(
  'the change is over after a window, a granule, the deadline and changeWithin',
  3,
  async ({ servers, clock, make, moving }) => {
    const limiter = make(2)
    const key = moving(2, 3)
    const old = over(servers.slice(0, 2)).find(key)
    await limiter.reshard(servers.map(named))
    clock.ms += CHANGE_MS - 1
    await limiter.check(key)
    const names = await sendOnce(old.server.port, 'DBSIZE')
    assert.is(names, 1)
    await sendOnce(old.server.port, 'FLUSHALL')
    clock.ms += 1
    await limiter.check(key)
    assert.is(await sendOnce(old.server.port, 'DBSIZE'), 0)
  },
)

reshardTest(
  'a server that leaves is charged until the change is over, then its connection closes',
  3,
  async ({ servers, clock, make }) => {
    const limiter = make(3)
    await limiter.ready()
    const left = servers[2]!
    const connections = async () =>
      Number(/connected_clients:(\d+)/.exec(await sendOnce(left.server.port, 'INFO', 'clients'))![1])
    const [key] = keysThat((each) => over(servers).find(each) === left) as [string]
    const before = await limiter.check(key, 4)
    await limiter.reshard(servers.slice(0, 2).map(named))
    assert.is((await limiter.check(key, 6)).allowed, true)
    assert.is((await limiter.check(key)).allowed, false)
    assert.equal((await limiter.stats()).shards!.map(({ name, leaving }) => [name, leaving]).sort(), [
      ['a', false],
      ['b', false],
      ['c', true],
    ])
    assert.is(await connections(), 2) // that of the limiter, and the one that asks
    clock.ms += CHANGE_MS
    assert.is((await limiter.check(key, 10)).allowed, true)
    await poll(async () => (await connections()) === 1, 'the end of the connection')
    assert.is(await limiter.refund(before), 0)
    assert.is((await limiter.stats()).shards!.length, 2)
  },
)

reshardTest(
  'block, unblock, penalize, clear and clearAll act on both servers',
  3,
  async ({ servers, make, moving }) => {
    const limiter = make(2)
    const key = moving(2, 3)
    const [old, now] = [over(servers.slice(0, 2)).find(key), servers[2]!]
    const each = async () => [await usedAt(old, key), await usedAt(now, key)]
    await limiter.reshard(servers.map(named))
    await limiter.penalize(key, 3)
    assert.equal(await each(), [3, 3])
    await limiter.block(key, '1d')
    const late = make(3) // it knows nothing of a change
    assert.is((await late.check(key)).allowed, false)
    assert.is(await limiter.unblock(key), true)
    assert.is((await late.peek(key)).allowed, true)
    await limiter.clear(key)
    assert.equal(await each(), [0, 0])
    await limiter.check(key, 2)
    await limiter.clearAll()
    assert.equal(await each(), [0, 0])
  },
)

reshardTest(
  'a refund by key takes the oldest units first, as if there were one server',
  3,
  async ({ servers, clock, make, moving }) => {
    const limiter = make(2)
    const key = moving(2, 3)
    await limiter.check(key, 5)
    clock.ms += GRANULE_MS
    await limiter.reshard(servers.map(named))
    await limiter.check(key, 4)
    clock.ms += GRANULE_MS
    assert.is(await limiter.refund(key, 6), 6) // the 5 of before the change, and one of the 4
    assert.is(await limiter.usage(key), 3)
    clock.ms += COUNTS_MS - 2 * GRANULE_MS
    const late = make(3)
    assert.is(await late.usage(key), 3)
  },
)

reshardTest(
  'rules with countRefused count a refusal at both servers, once at each',
  3,
  async ({ servers, make, moving }) => {
    const rules = [
      { name: 'plain', limit: 3, window: WINDOW_MS },
      { name: 'counting', limit: 2, window: WINDOW_MS, countRefused: true },
    ]
    const several = { limit: undefined, window: undefined, granularity: undefined, rules } as never
    const limiter = make(2, several)
    const key = moving(2, 3)
    await limiter.check(key, 2)
    await limiter.reshard(servers.map(named))
    assert.is((await limiter.check(key)).rule, 'counting')
    const late = make(3, several)
    assert.is(await late.usage(key, WINDOW_MS, { rule: 'counting' }), 1)
    assert.is(await late.usage(key, WINDOW_MS, { rule: 'plain' }), 0)
    assert.is(await limiter.usage(key, WINDOW_MS, { rule: 'counting' }), 3)
    assert.is(await limiter.usage(key, WINDOW_MS, { rule: 'plain' }), 2)
  },
)

reshardTest(
  'a process that starts with previousShards charges both',
  3,
  async ({ servers, clock, make, moving }) => {
    const before = make(2)
    const key = moving(2, 3)
    await before.check(key, 6)
    const started = make(3, { previousShards: servers.slice(0, 2).map(named) })
    assert.is((await started.check(key, 5)).allowed, false)
    assert.is((await started.check(key, 4)).allowed, true)
    assert.is((await before.check(key)).allowed, false)
    clock.ms += CHANGE_MS
    assert.is((await started.check(key, 10)).allowed, true)
    assert.is((await before.check(key, 10)).allowed, true)
  },
)

reshardTest(
  'a process that is late by changeWithin sees all counts of the others, and they see its own',
  3,
  async ({ servers, clock, make, moving }) => {
    const [ahead, behind] = [make(2), make(2)]
    const key = moving(2, 3)
    await ahead.reshard(servers.map(named))
    await behind.check(key, 3)
    await ahead.check(key, 3)
    clock.ms += GRANULE_MS - 1
    assert.is((await behind.check(key, 4)).remaining, 0) // it still has the old list
    clock.ms += 1
    await behind.reshard(servers.map(named))
    assert.is((await ahead.check(key)).allowed, false)
    assert.is((await behind.check(key)).allowed, false)
    for (const limiter of [behind, ahead]) {
      clock.ms += CHANGE_MS - COUNTS_MS
      await limiter.check(key, 10) // as much as there is
      const left = await Promise.all([ahead, behind].map((each) => each.check(key)))
      assert.ok(left.every(({ allowed }) => !allowed))
    }
  },
)

reshardTest(
  'a process that changes when the change of another one is over: a window may be twice over',
  3,
  async ({ servers, clock, make, moving }) => {
    const [ahead, behind] = [make(2), make(2)]
    const key = moving(2, 3)
    await ahead.reshard(servers.map(named))
    clock.ms += CHANGE_MS
    assert.is((await behind.check(key, 10)).allowed, true)
    assert.is((await ahead.check(key, 10)).allowed, true)
    await behind.reshard(servers.map(named))
    assert.is((await behind.check(key)).allowed, false)
  },
)

reshardTest(
  'a second change while the first one is under way: all three servers are charged',
  4,
  async ({ servers, make }) => {
    const limiter = make(2)
    const [key] = keysThat((each) => {
      const found = [2, 3, 4].map((count) => over(servers.slice(0, count)).find(each))
      return new Set(found).size === 3
    }) as [string]
    await limiter.check(key, 2)
    await limiter.reshard(servers.slice(0, 3).map(named))
    await limiter.check(key, 3)
    await limiter.reshard(servers.map(named))
    assert.is((await limiter.check(key, 4)).remaining, 1)
    const used = await Promise.all(
      [over(servers.slice(0, 2)).find(key), ...servers.slice(2)].map((s) => usedAt(s, key)),
    )
    assert.equal(used, [9, 7, 4])
  },
)

reshardTest(
  'an old server that is dead: moved keys are in an outage, unless their counts begin anew',
  3,
  async ({ servers, make }) => {
    const limiter = make(3, { deadline: 500 })
    await limiter.ready()
    const dead = servers[2]!
    const [own] = keysThat((key) => over(servers).find(key) === dead) as [string]
    const [other] = keysThat((key) => over(servers).find(key) !== dead) as [string]
    await limiter.check(other, 3)
    await dead.server.kill()
    const left = servers.slice(0, 2).map(named)
    await limiter.reshard(left)
    assert.is((await limiter.check(own)).source, 'outage')
    assert.is((await limiter.check(other)).remaining, 6)
    await limiter.reshard(left, { chargeBoth: false })
    const decision = await limiter.check(own)
    assert.equal([decision.source, decision.remaining], ['redis', 9])
  },
)

reshardTest(
  'a new server that does not answer in time: what the old one has charged is given back',
  3,
  async ({ servers, make, moving }) => {
    const limiter = make(2, { deadline: 200 })
    const key = moving(2, 3)
    const old = over(servers.slice(0, 2)).find(key)
    await limiter.reshard(servers.map(named))
    await limiter.check(key, 2)
    await servers[2]!.server.pause()
    const { allowed, source } = await limiter.check(key, 3)
    assert.equal([allowed, source], [false, 'outage'])
    await poll(async () => (await usedAt(old, key)) === 2, 'the units that are given back')
    servers[2]!.server.resume()
    await poll(async () => (await limiter.peek(key)).source === 'redis', 'the server is back')
  },
)

reshardTest(
  'reshard rejects, and changes nothing, for a bad list or a server that is not there',
  3,
  async ({ servers, make }) => {
    const limiter = make(2)
    await limiter.ready()
    const [a, b] = servers.map(named) as [RedisShard, RedisShard]
    const nowhere = new Redis(1, HOST, { lazyConnect: true })
    for (const [act, code, option] of [
      [() => limiter.reshard([]), 'ERR_MILLRACE_INVALID_OPTION', 'shards'],
      [() => limiter.reshard([a, a]), 'ERR_MILLRACE_INVALID_OPTION', 'shards[1].name'],
      [() => limiter.reshard([a, b, 7 as never]), 'ERR_MILLRACE_INVALID_OPTION', 'shards[2]'],
      [() => limiter.reshard([a], { chargeBoth: 1 as never }), 'ERR_MILLRACE_INVALID_OPTION', 'chargeBoth'],
      [() => limiter.reshard([a], { both: true } as never), 'ERR_MILLRACE_INVALID_OPTION', 'options'],
      [() => limiter.reshard([a, { name: 'd', client: nowhere }]), 'ERR_MILLRACE_OUTAGE', "the shard 'd'"],
    ] as const) {
      const error = await act().catch((reason) => reason)
      assert.equal([error.code, error.option], [code, option])
    }
    assert.equal(
      (await limiter.stats()).shards!.map(({ name }) => name),
      ['a', 'b'],
    )
    const single = createRedisLimiter({ ...RULE, client: servers[0]!.client })
    const error = await single.reshard([a]).catch((reason) => reason)
    assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_OPTION', 'shards'])
    await single.close()
    await limiter.close()
    assert.is((await limiter.reshard([a]).catch((reason) => reason)).code, 'ERR_MILLRACE_CLOSED')
  },
)

reshardTest('a shard at another address keeps its keys', 3, async ({ servers, make }) => {
  const limiter = make(2)
  const [a, b, moved] = servers as [ShardServer, ShardServer, ShardServer]
  const [key] = keysThat((each) => over([a, b]).find(each) === b) as [string]
  await limiter.check(key)
  await limiter.reshard([named(a), { name: 'b', client: moved.client }])
  await limiter.check(key)
  assert.equal([await usedAt(b, key), await usedAt(moved, key)], [1, 1])
})

test.run()
