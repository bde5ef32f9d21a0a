// run: full
// The store on a Redis Cluster and behind a Sentinel: the contract, a slot that moves, and failovers.
import { Redis } from 'ioredis'
import { Cluster as ValkeyCluster } from 'iovalkey'
import type { MillraceError } from 'millrace'
import { type ConfigChange, type ConfigStore, redisConfig } from 'millrace/config/redis'
import * as assert from 'uvu/assert'
import { RedisNames } from '#millrace/config/stores/redis/redis-script.js'
import { testStore } from '../conformance/config-stores.js'
import { type Cluster, startCluster } from '../redis/cluster.js'
import { clientOf } from '../redis/cluster-limiter.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { SENTINEL_NAME, startSentinel } from '../redis/sentinel.js'
import { redisTest as test } from '../redis/skip.js'

/** Far longer than a test takes. */
const LONG_MS = 60_000

const MINUTE = { limit: 100, window: '1m' } as const
const HOUR = { limit: 5, window: '1h' } as const

let cluster: Cluster
test.before(async () => {
  cluster = await startCluster()
})
test.after(() => cluster.stop())

let prefixes = 0
const nextPrefix = () => `cluster ${++prefixes}`

const LIBRARIES = {
  ioredis: () => clientOf(cluster),
  iovalkey: () => clientOf(cluster, {}, ValkeyCluster as never),
}

for (const [library, connect] of Object.entries(LIBRARIES))
  testStore(
    (name, act) => test(`${library}: ${name}`, act),
    async () => {
      const prefix = nextPrefix()
      const names = new RedisNames(prefix, 0)
      const clients: { disconnect(): void }[] = []
      return {
        open() {
          const client = connect()
          clients.push(client)
          return redisConfig({ client, prefix, deadlineMs: LONG_MS })
        },
        async plant(key, text) {
          const client = clientOf(cluster)
          await client.set(names.policyOf(key), text)
          await client.zadd(names.keys, 0, key)
          client.disconnect()
        },
        async remove() {
          for (const client of clients) client.disconnect()
        },
      }
    },
  )

/** Resolves when a change has been stored, however many calls before have been refused by name. */
async function putAtLast(store: ConfigStore, key: string): Promise<void> {
  await poll(async () => {
    try {
      await store.put(key, HOUR)
      return true
    } catch (error) {
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE', String(error))
      return false
    }
  }, 'a change after the failover')
}

const isAny = ({ keys, error }: ConfigChange): boolean => keys === undefined && error === undefined

async function withStores(
  clients: readonly [{ disconnect(): void }, { disconnect(): void }],
  act: (store: ConfigStore, other: ConfigStore, seen: ConfigChange[]) => Promise<void>,
  prefix = nextPrefix(),
): Promise<void> {
  for (const client of clients) (client as Redis).on('error', () => {})
  const [store, other] = clients.map((client) => redisConfig({ client: client as Redis, prefix })) as [
    ConfigStore,
    ConfigStore,
  ]
  try {
    await other.put('a', MINUTE)
    const seen: ConfigChange[] = []
    store.watch((change) => void seen.push(change))
    await poll(() => seen.some(isAny), 'the subscription')
    seen.length = 0
    await act(store, other, seen)
  } finally {
    for (const each of [store, other]) await each.close()
    for (const client of clients) client.disconnect()
  }
}

test('a client that reads from replicas is refused', () => {
  try {
    redisConfig({ client: clientOf(cluster, { scaleReads: 'slave' }) })
    assert.unreachable()
  } catch (error) {
    assert.match((error as MillraceError).message, /^client\.options\.scaleReads: expected 'master'/)
  }
})

test('a slot that moves to another node: reads and changes follow it', () => {
  const prefix = nextPrefix()
  return withStores(
    [clientOf(cluster), clientOf(cluster)],
    async (store, other, seen) => {
      for (let i = 0; i < 20; i++) await store.put(`user:${i}`, MINUTE)
      const slot = await cluster.slotOf(new RedisNames(prefix, 0).keys)
      const owner = await cluster.ownerOf(slot)
      const to = cluster.nodes.slice(0, 3).find((node) => node !== owner)!
      const migration = await cluster.migrate(slot, to)
      await migration.finish()
      assert.is((await store.find(['none', 'user:7']))?.key, 'user:7')
      assert.is((await store.list({ prefix: 'user:' })).length, 20)
      seen.length = 0
      await other.put('moved', HOUR)
      const isTold = (change: ConfigChange) => isAny(change) || change.keys?.includes('moved')
      await poll(() => seen.some(isTold), 'the change by another store')
    },
    prefix,
  )
})

test('a failover of the node of the store: named errors, then changes, and listeners know', () => {
  const prefix = nextPrefix()
  return withStores(
    [clientOf(cluster), clientOf(cluster)],
    async (store, other, seen) => {
      const owner = await cluster.ownerOf(await cluster.slotOf(new RedisNames(prefix, 0).keys))
      await cluster.failover(owner)
      await putAtLast(other, 'b')
      assert.equal((await other.get('b'))?.policy, HOUR)
      await poll(() => seen.some(isAny), 'that anything may have changed')
      await poll(async () => (await store.get('b').catch(() => undefined)) !== undefined, 'the change')
      await owner.restart()
      await cluster.healthy()
    },
    prefix,
  )
})

test('a failover by a Sentinel: named errors, then changes, and listeners know', async () => {
  const watched = await startSentinel()
  const connect = () =>
    new Redis({ sentinels: [{ host: HOST, port: watched.sentinel.port }], name: SENTINEL_NAME })
  try {
    await withStores([connect(), connect()], async (store, other, seen) => {
      await watched.failover()
      await putAtLast(other, 'b')
      await poll(() => seen.some(isAny), 'that anything may have changed')
      await poll(async () => (await store.get('b').catch(() => undefined)) !== undefined, 'the change')
      seen.length = 0
      await poll(async () => {
        await other.put('c', HOUR)
        return seen.some(({ keys }) => keys?.includes('c'))
      }, 'a change by another store')
    })
  } finally {
    await watched.stop()
  }
})

test.run()
