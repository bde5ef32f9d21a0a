// run: also-long, modules
// Policies that move to other shards, while they are read and changed.

import { shardedConfig } from 'millrace/config/sharded'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { codeOf, KEYS, namesOf, policyOf, shardsOf } from './named-shards.js'
import type { TextStore } from './text-store.js'

interface Stage {
  /** Before the move: where `key` is. */
  readonly from: TextStore
  /** Where it belongs. */
  readonly to: TextStore
  readonly key: string
  readonly version: number
  /** A process that is to move. */
  readonly mover: ReturnType<typeof shardedConfig>
  /** Another process that knows of the change. */
  readonly other: ReturnType<typeof shardedConfig>
}

/** A key that belongs to a shard that is new. */
async function stage(): Promise<Stage> {
  const all = shardsOf('a', 'b')
  const before = { a: all.a! }
  const key = KEYS.find((each) => namesOf(all).find(each) === 'b')!
  const mover = shardedConfig(before)
  const { version } = await mover.put(key, policyOf(1))
  mover.reshard(all)
  const other = shardedConfig(all, { previous: before })
  return { from: all.a!, to: all.b!, key, version, mover, other }
}

/** Sets a function that is called once. */
function once(act: () => Promise<unknown> | unknown): () => Promise<void> {
  let isDone = false
  return async () => {
    if (isDone) return
    isDone = true
    await act()
  }
}

/** Writes as a process that does not know of the change of the list. */
const plant = (shard: TextStore, key: string, limit: number, version: number) =>
  void shard.texts.set(key, JSON.stringify({ version, ...policyOf(limit) }))

test('ifVersion of a policy that has not been moved yet', async () => {
  const { key, version, other, to } = await stage()
  assert.is(await codeOf(other.put(key, policyOf(2), { ifVersion: null })), 'ERR_MILLRACE_CONFIG_CONFLICT')
  assert.is(await codeOf(other.delete(key, { ifVersion: version + 1 })), 'ERR_MILLRACE_CONFIG_CONFLICT')
  const next = await other.put(key, policyOf(2), { ifVersion: version })
  assert.ok(next.version > version)
  assert.is(JSON.parse(to.texts.get(key)!).version, next.version)
  assert.is(await other.delete(key, { ifVersion: next.version }), true)
  assert.is(await other.get(key), undefined)
})

test('a process with the old list sees changes of a policy until it is moved', async () => {
  const { from, key, other, mover } = await stage()
  await other.put(key, policyOf(2))
  assert.equal((await from.get(key))?.policy, policyOf(2))
  await mover.move()
  assert.is(await from.get(key), undefined)
})

test('a put at the new place, in the moment in which the policy is copied there, stays', async () => {
  const { to, key, version, mover } = await stage()
  to.onReplace = once(() => plant(to, key, 2, version + 1))
  await mover.move()
  assert.equal(await mover.get(key), { key, policy: policyOf(2), version: version + 1 })
})

test('a put at the old place after the policy was copied, and before it is deleted there, moves', async () => {
  const { from, key, version, mover } = await stage()
  from.onReplace = once(() => plant(from, key, 2, version + 1))
  await mover.move()
  assert.equal(await mover.get(key), { key, policy: policyOf(2), version: version + 1 })
  assert.is(from.texts.size, 0)
})

test('a put at the old place while the policy is copied moves, too', async () => {
  const { from, to, key, version, mover } = await stage()
  to.onReplace = once(() => plant(from, key, 2, version + 1))
  await mover.move()
  assert.equal(await mover.get(key), { key, policy: policyOf(2), version: version + 1 })
  assert.is(from.texts.size, 0)
})

test('a read that has asked the new place before the move and the old one after it finds the policy', async () => {
  const { from, to, key, mover, other } = await stage()
  to.asked.length = 0
  let isMoved = false
  from.onRead = once(async () => {
    await new Promise((resolve) => setImmediate(resolve)) // the new place is asked in the same turn
    assert.equal(to.asked, [[key]])
    await mover.move()
    isMoved = true
  })
  assert.is((await other.get(key))?.key, key)
  assert.ok(isMoved)
})

test('what is no policy stays where it is, and is reported', async () => {
  const { from, key, mover } = await stage()
  from.texts.set(key, '{}')
  assert.equal(await mover.move(), { moved: 0, invalid: [key] })
  assert.ok(from.texts.has(key))
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
        for (const each of running) await each // changes cause further ones
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

test.run()
