import { randomUUID } from 'node:crypto'
import { mongoConfig } from 'millrace/config/mongodb'
import { Long, MongoClient } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigChange } from '#millrace/config/config-store.js'
import { testStore } from '../conformance/config-stores.js'
import { poll } from '../redis/poll.js'
import { MAJORITY, startServers } from './mongodb-server.js'

const MINUTE = { limit: 100, window: '1m' }
const servers = await startServers()

for (const { name, url } of servers) {
  const on = (claim: string, act: () => Promise<void>) => test(`${name}: ${claim}`, act)
  /** Begins a database of its own. */
  const place = () => {
    const database = `millrace-${randomUUID()}`
    const client = new MongoClient(url)
    const policies = client.db(database).collection<{ _id: string }>('policies', MAJORITY)
    return {
      database,
      client,
      policies,
      open: () => mongoConfig({ url, database, deadline: '1m' }),
      plant: async (key: string, text: string) => {
        await policies.deleteOne({ _id: key })
        await policies.insertOne({ _id: key, ...JSON.parse(text) })
      },
      async remove() {
        await client.db(database).dropDatabase(MAJORITY)
        await client.close()
      },
    }
  }

  testStore(on, async () => place())

  on('others read a policy as a document', async () => {
    const { open, policies, remove } = place()
    const store = open()
    const { version } = await store.put('user:1', MINUTE)
    assert.equal(await policies.find({}, { readConcern: (await kindOf(url)).readConcern }).toArray(), [
      { _id: 'user:1', format: 1, version, limit: 100, window: '1m' },
    ])
    await store.close()
    await remove()
  })

  on('keys that are no strings are not seen, and a prefix ends where it ends', async () => {
    const { open, policies, remove } = place()
    const store = open()
    await policies.insertOne({ _id: 7 as unknown as string })
    const keys = ['a', 'b\u{d7ff}', 'b\u{d7ff}x', 'b\u{e000}', 'c\u{10ffff}', 'c\u{10ffff}\u{10ffff}', 'd']
    for (const key of keys) await store.put(key, MINUTE)
    const listed = async (prefix?: string) =>
      (await store.list(prefix === undefined ? {} : { prefix })).map(({ key }) => key)
    assert.equal(await listed(), keys)
    assert.equal(await listed('b\u{d7ff}'), keys.slice(1, 3))
    assert.equal(await listed('c\u{10ffff}'), keys.slice(4, 6))
    assert.equal(await listed('\u{10ffff}'), [])
    assert.is(await store.count!(), keys.length)
    await store.close()
    await remove()
  })

  on('a document is written over only as it was read, whatever its version is', async () => {
    const { open, policies, remove } = place()
    const store = open()
    for (const version of [null, 'x', -1, 1.5, [7], { a: 1 }, Long.MAX_VALUE, new Date(0), /x/]) {
      await policies.deleteOne({ _id: 'a' })
      await policies.insertOne({ _id: 'a', version, limit: 1, window: '1s' } as { _id: string })
      assert.ok((await store.put('a', MINUTE)).version > 0, String(version))
      assert.equal((await store.get('a'))?.policy, MINUTE)
    }
    await store.close()
    await remove()
  })

  on('a client that was handed in stays open, one that the store has made does not', async () => {
    const { client, database, open, remove } = place()
    const store = mongoConfig({ client, database })
    await store.put('a', MINUTE)
    store.watch(() => {})
    await store.close()
    await client.db('admin').command({ ping: 1 })
    const own = open()
    assert.equal((await own.get('a'))?.policy, MINUTE)
    await own.close()
    await remove()
  })

  on('a watch names the keys, once for one that is written by another store', async () => {
    const { database, open, remove } = place()
    const [store, other] = [mongoConfig({ url, database, deadline: '1m' }), open()]
    await other.put('before', MINUTE)
    const changes: ConfigChange[] = []
    store.watch((change) => void changes.push(change))
    await poll(() => changes.some(({ keys }) => keys === undefined), 'the beginning of the watch')
    changes.length = 0
    const told = () => changes.flatMap(({ keys }) => keys ?? ['any'])
    await other.put('a', MINUTE)
    await poll(() => told().includes('a'), 'a')
    await other.delete('a')
    await poll(() => told().filter((key) => key === 'a').length === 2, 'the deletion of a')
    for (let i = 0; i < 20; i++) await other.put(`many:${i}`, MINUTE)
    await poll(() => told().includes('many:19'), 'the last of many')
    for (let i = 0; i < 20; i++) assert.ok(told().includes(`many:${i}`), `many:${i}`)
    await store.close()
    await other.close()
    await remove()
  })

  on('a collection that is dropped is told, and one of the same name is watched', async () => {
    const { open, policies, client, database, remove } = place()
    const { isReplicated } = await kindOf(url)
    const [store, other] = [open(), open()]
    const changes: ConfigChange[] = []
    await store.put('a', MINUTE)
    store.watch((change) => void changes.push(change))
    await poll(() => changes.length > 0, 'the beginning of the watch')
    changes.length = 0
    await policies.drop(MAJORITY)
    if (isReplicated) await poll(() => changes.some(({ keys }) => keys === undefined), 'the drop')
    else await client.db(database).collection('policies.changes').drop(MAJORITY)
    await other.put('b', MINUTE)
    await poll(() => changes.some(({ keys, error }) => !error && (keys?.includes('b') ?? true)), 'b')
    assert.equal(
      changes.filter(({ error }) => error),
      [],
    )
    await store.close()
    await other.close()
    await remove()
  })
}

/** What the server is. */
async function kindOf(url: string) {
  const client = new MongoClient(url)
  const { setName, msg } = await client.db('admin').command({ hello: 1 })
  await client.close()
  const isReplicated = setName !== undefined || msg !== undefined
  return { isReplicated, readConcern: { level: isReplicated ? ('majority' as const) : ('local' as const) } }
}

test('the stand-in knew all that was asked', async () => {
  for (const server of servers) await server.stop()
})

test.run()
