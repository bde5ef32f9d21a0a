// run: also-full, modules
// Several stores as one: the contract of every store, and where policies are.
import { MillraceError } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { type ShardedConfigOptions, type Shards, shardedConfig } from 'millrace/config/sharded'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isSync } from '#millrace/config/config-store.js'
import type { Policy } from '#millrace/config/policy.js'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { testStore } from '../conformance/config-stores.js'
import { sized } from '../size.js'
import { TextStore } from './text-store.js'

const MINUTE: Policy = { limit: 100, window: '1m' }

for (const [count, replicas] of [
  [1, 1],
  [3, 1],
  [3, 2],
] as const) {
  const claimOf = (claim: string) => `${count} shards, ${replicas} of each: ${claim}`
  testStore(
    (claim, act) => test(claimOf(claim), act),
    async () => {
      const shards = Array.from({ length: count }, () => new TextStore())
      const places = new Rendezvous(shards.map((shard, i) => [String(i), shard]))
      return {
        open: () => shardedConfig(shards, { replicas }),
        plant: async (key, text) => {
          for (const shard of places.ranked(key, replicas)) shard.texts.set(key, text)
        },
        remove: async () => {},
      }
    },
  )
  testStore(
    (claim, act) => test(`in memory, ${claimOf(claim)}`, act),
    async () => {
      const shards = Array.from({ length: count }, () => memoryConfig())
      return { open: () => shardedConfig(shards, { replicas }), remove: async () => {} }
    },
  )
}

test('shards have equal shares, within a twentieth; a fourth takes a quarter, and no other key moves', async () => {
  const names = ['a', 'b', 'c', 'd']
  const stores = Object.fromEntries(names.map((name) => [name, memoryConfig()]))
  const { d, ...three } = stores
  const store = shardedConfig(three)
  const keys = Array.from({ length: sized({ quick: 5_000, full: 50_000 }) }, (_, i) => `user:${i}`)
  for (const key of keys) await store.put(key, MINUTE)
  const holders = () => keys.map((key) => names.filter((name) => stores[name]!.findNow([key]) !== undefined))
  const before = holders()
  for (const name of ['a', 'b', 'c']) {
    const share = before.filter((each) => each[0] === name).length
    assert.ok(Math.abs((share * 3) / keys.length - 1) < 0.05, `${share} of ${keys.length}`)
  }
  store.reshard({ ...three, d: d! })
  for (const key of keys.slice(0, 100)) assert.is(store.findNow([key])?.key, key)
  const { moved } = await store.move()
  assert.ok(Math.abs((moved * 4) / keys.length - 1) < 0.05, `${moved} of ${keys.length}`)
  const after = holders()
  assert.ok(after.every((each) => each.length === 1))
  assert.is(after.filter((each, i) => each[0] !== before[i]![0]).length, moved)
  assert.is(after.filter((each) => each[0] === 'd').length, moved)
  await store.close()
})

test('with two replicas each policy is on two shards, with one version, and is listed once', async () => {
  const shards = { a: new TextStore(), b: new TextStore(), c: new TextStore() }
  const store = shardedConfig(shards, { replicas: 2 })
  for (let i = 0; i < 50; i++) await store.put(`key:${i}`, MINUTE)
  await store.put('key:7', { limit: 1, window: '1m' })
  await store.delete('key:8')
  for (let i = 0; i < 50; i++) {
    const texts = Object.values(shards).flatMap(({ texts }) => texts.get(`key:${i}`) ?? [])
    assert.is(texts.length, i === 8 ? 0 : 2, `key:${i}`)
    assert.is(texts[0], texts[1])
  }
  assert.is((await store.list({ limit: 1_000 })).length, 49)
  assert.equal([await store.count!(), await store.count!({ prefix: 'key:4' })], [49, 11])
})

test('a shard that can not count is listed', async () => {
  class Listed extends TextStore {
    override count = undefined as never
  }
  const shards = [new Listed(), new TextStore()]
  const store = shardedConfig(shards)
  const keys = Array.from({ length: 20_500 }, (_, i) => `key:${i}`)
  for (const key of keys) shards[0]!.texts.set(key, '{}')
  await store.put('user:1', MINUTE)
  assert.equal([await store.count!(), await store.count!({ prefix: 'key:1' })], [20_501, 11_111])
  shards[0]!.isDown = true
  const { code, message } = await store.count!().catch((error) => error)
  assert.is(code, 'ERR_MILLRACE_CONFIG_STORE')
  assert.match(message, /^shard 0: .*the connection is lost/)
})

test('find asks each shard that may have one of the keys once', async () => {
  const shards = Array.from({ length: 3 }, () => new TextStore())
  const store = shardedConfig(shards)
  const keys = Array.from({ length: 9 }, (_, i) => `${'a:'.repeat(8 - i)}*`)
  await store.put(keys[4]!, MINUTE)
  for (const { asked } of shards) asked.length = 0
  assert.is((await store.find(keys))?.key, keys[4])
  assert.ok(shards.every(({ asked }) => asked.length <= 1))
  assert.equal(shards.flatMap(({ asked }) => asked.flat()).sort(), [...keys].sort())
})

test('findNow only if all shards answer at once', () => {
  assert.ok(isSync(shardedConfig([memoryConfig(), memoryConfig()])))
  assert.not.ok(isSync(shardedConfig([memoryConfig(), new TextStore()])))
  const store = shardedConfig([memoryConfig()])
  assert.throws(() => store.reshard([new TextStore()]), /stores\.0: expected/)
})

test('bad options are refused by name', () => {
  const store = memoryConfig()
  for (const [stores, options, message] of [
    [undefined, {}, /^stores: expected a list/],
    [[], {}, /^stores: expected at least 1/],
    [[{}], {}, /^stores\.0: expected a configuration store/],
    [[store, store], {}, /only once/],
    [[store], { replicas: 2 }, /at least 2 shards/],
    [[store], { replicas: 0 }, /^replicas/],
    [[store], { replica: 1 }, /^options: expected only replicas, previous/],
    [{ a: store }, { previous: { b: store } }, /^previous\.b: expected the same store/],
    [{ a: store }, { previous: { a: memoryConfig() } }, /^previous\.a: expected the same store/],
  ] as const) {
    try {
      shardedConfig(stores as unknown as Shards, options as ShardedConfigOptions)
      assert.unreachable(String(message))
    } catch (error) {
      assert.instance(error, MillraceError)
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_INVALID_OPTION')
      assert.match((error as MillraceError).message, message)
    }
  }
})

test.run()
