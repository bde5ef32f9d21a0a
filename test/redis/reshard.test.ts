// Changes of the list of servers: keys that move are charged at both servers until the change is over.
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import {
  CHANGE_MS,
  COUNTS_MS,
  GRANULE_MS,
  named,
  over,
  reshardTest,
  usedAt,
  WINDOW_MS,
} from './reshard-stage.js'
import { keysThat } from './sharded-servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

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

test.run()
