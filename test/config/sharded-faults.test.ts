// Shards that reject, and policies that change while they are moved.
import fc from 'fast-check'
import { MillraceError } from 'millrace'
import { shardedConfig } from 'millrace/config/sharded'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigChange } from '#millrace/config/config-store.js'
import type { Policy } from '#millrace/config/policy.js'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { TextStore } from './text-store.js'

const policyOf = (limit: number): Policy => ({ limit, window: '1m' })
const KEYS = Array.from({ length: 60 }, (_, i) => `user:${i}`)

const namesOf = (shards: Record<string, TextStore>) =>
  new Rendezvous(Object.keys(shards).map((name) => [name, name]))
const shardsOf = (...names: string[]): Record<string, TextStore> =>
  Object.fromEntries(names.map((name) => [name, new TextStore()]))

async function codeOf(act: Promise<unknown>): Promise<string | undefined> {
  try {
    await act
    return undefined
  } catch (error) {
    assert.instance(error, MillraceError)
    return (error as MillraceError).code
  }
}

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

test('while policies move they are found, changed and deleted, and nothing is lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 2),
      fc.constantFrom(['a', 'b'], ['a', 'b', 'c'], ['b', 'c', 'd']),
      fc.array(fc.record({ key: fc.nat(9), limit: fc.nat(5), at: fc.nat(40) }), { maxLength: 12 }),
      async (replicas, names, changes) => {
        const all = shardsOf('a', 'b', 'c', 'd')
        const pick = (list: readonly string[]) => Object.fromEntries(list.map((name) => [name, all[name]!]))
        const before = pick(['a', 'b', 'c'])
        const store = shardedConfig(before, { replicas })
        const keys = KEYS.slice(0, 10)
        for (const key of keys) await store.put(key, policyOf(9))
        const other = shardedConfig(pick(names), { replicas, previous: before })
        store.reshard(pick(names))
        const expected = new Map(keys.map((key) => [key, 9]))
        // Each change is made in the middle of some replacement of the move, by the one process or by the other.
        let steps = 0
        const running: Promise<unknown>[] = []
        const change = ({ key: i, limit }: { key: number; limit: number }, by: typeof store) => {
          const key = keys[i]!
          expected.set(key, limit)
          running.push(limit === 0 ? by.delete(key) : by.put(key, policyOf(limit)))
        }
        const seen = new Set<number>()
        for (const shard of Object.values(all))
          shard.onReplace = () => {
            steps++
            for (const each of changes)
              if (each.at === steps && !seen.has(each.key)) {
                seen.add(each.key)
                change(each, each.limit === 0 ? store : other)
              }
            return new Promise<void>((resolve) => setImmediate(resolve))
          }
        const moving = store.move()
        for (const key of keys) if (!seen.has(keys.indexOf(key))) await store.get(key)
        await moving
        await Promise.all(running)
        for (const shard of Object.values(all)) shard.onReplace = () => {}
        await other.move()
        for (const key of keys) {
          const limit = expected.get(key)!
          const policy = limit === 0 ? undefined : policyOf(limit)
          assert.equal((await store.get(key))?.policy, policy, key)
          assert.equal((await other.get(key))?.policy, policy, key)
          const holders = names.filter((name) => all[name]!.texts.has(key))
          assert.is(holders.length, limit === 0 ? 0 : replicas)
        }
      },
    ),
    { numRuns: 40 },
  )
})

test('while policies move, no read misses one', async () => {
  const all = shardsOf('a', 'b', 'c')
  const { c, ...two } = all
  const store = shardedConfig(two as Record<string, TextStore>)
  for (const key of KEYS) await store.put(key, policyOf(1))
  const reader = shardedConfig(all, { previous: two as Record<string, TextStore> })
  store.reshard({ ...two, c: c! } as Record<string, TextStore>)
  let isMoving = true
  const moving = store.move().finally(() => {
    isMoving = false
  })
  let reads = 0
  while (isMoving)
    for (const key of KEYS) {
      assert.is((await reader.get(key))?.key, key)
      reads++
    }
  await moving
  assert.ok(reads >= KEYS.length)
  assert.is((await reader.list()).length, KEYS.length)
})

test('a move that fails may be repeated, and nothing is missing meanwhile', async () => {
  const all = shardsOf('a', 'b', 'c')
  const { c, ...two } = all
  const store = shardedConfig(two as Record<string, TextStore>)
  for (const key of KEYS) await store.put(key, policyOf(1))
  store.reshard(all)
  c!.onReplace = (key) => {
    if (key > 'user:3') c!.isDown = true
  }
  assert.is(await codeOf(store.move()), 'ERR_MILLRACE_CONFIG_STORE')
  assert.throws(() => store.reshard(all), /after `move` has ended/)
  c!.onReplace = () => {}
  c!.isDown = false
  for (const key of KEYS) assert.is((await store.get(key))?.key, key)
  await store.move()
  const count = Object.values(all).reduce((sum, { texts }) => sum + texts.size, 0)
  assert.is(count, KEYS.length)
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
