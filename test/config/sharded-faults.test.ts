// Shards that reject, and replicas that differ.
// run: modules

import type { MillraceError } from 'millrace'
import { shardedConfig } from 'millrace/config/sharded'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigChange } from '#millrace/config/config-store.js'
import { codeOf, KEYS, namesOf, policyOf, shardsOf } from './named-shards.js'
import type { TextStore } from './text-store.js'

test('keys of a dead shard reject and name it; others are found, also if they are more specific', async () => {
  const shards = shardsOf('a', 'b', 'c')
  const store = shardedConfig(shards)
  for (const key of KEYS) await store.put(key, policyOf(1))
  const places = namesOf(shards)
  shards.b!.isDown = true
  const [dead, alive] = [true, false].map(
    (isDead) => KEYS.find((key) => (places.find(key) === 'b') === isDead)!,
  )
  try {
    await store.get(dead!)
    assert.unreachable()
  } catch (error) {
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.match((error as MillraceError).message, /^shard b: .*the connection is lost/)
  }
  assert.is((await store.find([alive!, dead!]))?.key, alive)
  assert.is(await codeOf(store.find([dead!, alive!])), 'ERR_MILLRACE_CONFIG_STORE')
  assert.is(await codeOf(store.put(dead!, policyOf(2))), 'ERR_MILLRACE_CONFIG_STORE')
  assert.is(await codeOf(store.list()), 'ERR_MILLRACE_CONFIG_STORE')
  assert.is(await codeOf(store.count!()), 'ERR_MILLRACE_CONFIG_STORE')
  shards.b!.isDown = false
  assert.equal((await store.get(dead!))?.policy, policyOf(1))
})

test('with two replicas one dead shard is not noticed by reads; changes of its keys reject', async () => {
  const shards = shardsOf('a', 'b', 'c')
  const store = shardedConfig(shards, { replicas: 2 })
  for (const [i, key] of KEYS.entries()) await store.put(key, policyOf(i + 1))
  shards.b!.isDown = true
  for (const [i, key] of KEYS.entries()) assert.equal((await store.get(key))?.policy, policyOf(i + 1))
  assert.is((await store.list({ limit: 7, after: 'user:19' })).length, 7)
  assert.is((await store.list()).length, KEYS.length)
  const isOnB = (key: string) => namesOf(shards).ranked(key, 2).includes('b')
  for (const key of KEYS)
    assert.is(
      await codeOf(store.put(key, policyOf(100))),
      isOnB(key) ? 'ERR_MILLRACE_CONFIG_STORE' : undefined,
    )
  shards.a!.isDown = true
  assert.is(await codeOf(store.list()), 'ERR_MILLRACE_CONFIG_STORE')
})

test('a change that reached only the first shard is completed by the next one, or by move', async () => {
  const shards = shardsOf('a', 'b')
  const store = shardedConfig(shards, { replicas: 2 })
  const [first, second] = namesOf(shards).ranked('x', 2)
  await store.put('x', policyOf(1))
  await store.put('y', policyOf(1))
  shards[second!]!.isDown = true
  assert.is(await codeOf(store.put('x', policyOf(2))), 'ERR_MILLRACE_CONFIG_STORE')
  shards[second!]!.isDown = false
  assert.is.not(shards.a!.texts.get('x'), shards.b!.texts.get('x'))
  await store.move()
  assert.is(shards[first!]!.texts.get('x'), shards[second!]!.texts.get('x'))
  assert.equal((await store.get('x'))?.policy, policyOf(2))
  shards[first!]!.texts.clear() // it has lost its data
  assert.is((await store.move()).moved, 0)
  assert.is(shards.a!.texts.size, 2)
  assert.equal([...shards.a!.texts].sort(), [...shards.b!.texts].sort())
})

test('two writers at once on two replicas leave both equal', async () => {
  const shards = shardsOf('a', 'b')
  const [one, other] = [shardedConfig(shards, { replicas: 2 }), shardedConfig(shards, { replicas: 2 })]
  for (let round = 0; round < 30; round++) {
    const results = await Promise.allSettled([
      one.put('x', policyOf(1)),
      other.delete('x'),
      other.put('x', policyOf(2)),
      one.delete('x'),
    ])
    assert.ok(results.every(({ status }) => status === 'fulfilled'))
    assert.is(shards.a!.texts.get('x'), shards.b!.texts.get('x'))
  }
})

test('what is no policy is an error only if no more specific key has one', async () => {
  const shards = shardsOf('a', 'b', 'c')
  const store = shardedConfig(shards)
  const places = namesOf(shards)
  const [bad, good] = KEYS.filter((key) => places.find(key) === 'a')
  const other = KEYS.find((key) => places.find(key) === 'b')!
  shards.a!.texts.set(bad!, 'garbage')
  await store.put(good!, policyOf(1))
  await store.put(other, policyOf(2))
  assert.is((await store.find([good!, bad!]))?.key, good)
  assert.is((await store.find([other, bad!, good!]))?.key, other)
  assert.is(await codeOf(store.find([bad!, good!, other])), 'ERR_MILLRACE_INVALID_POLICY')
  await store.put(bad!, policyOf(3))
  assert.equal((await store.find([bad!, good!]))?.policy, policyOf(3))
})

test('watch hears all shards, those that join too, until its end; move tells that anything may have changed', async () => {
  const all = shardsOf('a', 'b')
  const { b, ...one } = all
  const store = shardedConfig(one as Record<string, TextStore>)
  const told: ConfigChange[] = []
  const end = store.watch((change) => void told.push(change))
  store.reshard(all)
  await b!.put('x', policyOf(1))
  assert.equal(told, [{ keys: ['x'] }])
  await store.move()
  assert.ok(told.some(({ keys, error }) => keys === undefined && error === undefined))
  told.length = 0
  end()
  await b!.put('x', policyOf(2))
  assert.equal(told, [])
  await store.close()
  assert.is(await codeOf(b!.get('x')), 'ERR_MILLRACE_CLOSED')
})

test.run()
