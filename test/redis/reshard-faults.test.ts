// Changes of the list of servers in which a server is dead, does not answer, or moves, and lists that are refused.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisShard } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { named, over, RULE, reshardTest, usedAt } from './reshard-stage.js'
import { keysThat, type ShardServer } from './sharded-servers.js'
import { redisTest as test } from './skip.js'

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
