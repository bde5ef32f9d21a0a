// The store on a real redis-server: the contract, and how its values look to others.
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { MillraceError } from 'millrace'
import { type RedisConfigOptions, redisConfig } from 'millrace/config/redis'
import { createClient, createCluster, createSentinel } from 'redis'
import * as assert from 'uvu/assert'
import { RedisNames } from '#millrace/config/stores/redis/redis-script.js'
import { testStore } from '../conformance/config-stores.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'

/** Far longer than a test takes. */
const LONG_MS = 60_000

const MINUTE = { limit: 100, window: '1m' } as const

let server: Server
test.before(async () => {
  server = await startRedis()
})
test.after(() => server.stop())

const LIBRARIES = {
  ioredis: () => new Redis(server.port, HOST),
  iovalkey: () => new Valkey(server.port, HOST),
  'node-redis': () => connected(server.port),
} satisfies Record<string, () => RedisConfigOptions['client']>

function connected(port: number) {
  const client = createClient({ url: `redis://${HOST}:${port}` })
  client.connect().catch(() => {})
  return Object.assign(client, { disconnect: () => client.destroy() })
}

let places = 0

for (const [library, connect] of Object.entries(LIBRARIES))
  testStore(
    (name, act) => test(`${library}: ${name}`, act),
    async () => {
      const prefix = `test ${++places}`
      const names = new RedisNames(prefix, 0)
      const clients: { disconnect(): void }[] = []
      return {
        open() {
          const client = connect()
          clients.push(client)
          return redisConfig({ client, prefix, deadlineMs: LONG_MS })
        },
        async plant(key, text) {
          await sendOnce(server.port, 'SET', names.policyOf(key), text)
          await sendOnce(server.port, 'ZADD', names.keys, 0, key)
        },
        async remove() {
          for (const client of clients) client.disconnect()
        },
      }
    },
  )

async function withClient(act: (client: Redis) => Promise<void>, options: object = {}): Promise<void> {
  const client = new Redis(server.port, HOST, options)
  try {
    await act(client)
  } finally {
    client.disconnect()
  }
}

test('options are checked by name', () =>
  withClient(
    async (client) => {
      const refused: readonly [object | undefined, RegExp][] = [
        [undefined, /^options: /],
        [{}, /^client: .*ioredis, iovalkey or node-redis .*, got undefined/],
        [{ client: createCluster({ rootNodes: [] }) }, /^client: .*a Cluster or a Sentinel of node-redis/],
        [
          { client: createSentinel({ name: 'a', sentinelRootNodes: [] }) },
          /^client: .*a Sentinel of node-redis/,
        ],
        [{ client: createClient({ keyPrefix: 'app:' }) }, /^client\.options\.keyPrefix: .*got "app:"/],
        [{ client, prefx: 'a' }, /^options: expected only client, prefix/],
        [{ client, prefix: '' }, /^prefix: .*1 to 64/],
        [{ client, prefix: 'a{b}' }, /^prefix: .*braces/],
        [{ client, deadlineMs: 0 }, /^deadlineMs: .*1 to 3600000, got 0/],
        [{ client, deadlineMs: '1s' }, /^deadlineMs: /],
        [{ client, pollMs: 9 }, /^pollMs: .*10 to 60000/],
        [{ client: client.duplicate({ keyPrefix: 'app:' }) }, /^client\.options\.keyPrefix: .*got "app:"/],
      ]
      for (const [options, text] of refused)
        try {
          redisConfig(options as RedisConfigOptions)
          assert.unreachable(String(text))
        } catch (error) {
          assert.is((error as MillraceError).code, 'ERR_MILLRACE_INVALID_OPTION')
          assert.match((error as MillraceError).message, text)
        }
      assert.is(client.status, 'wait', 'no client is connected by the checks')
    },
    { lazyConnect: true },
  ))

test('a policy is a JSON text under a name of its own, whatever the key is', () =>
  withClient(async (client) => {
    const store = redisConfig({ client, prefix: 'names' })
    await store.put('a{b}:*', MINUTE)
    const { version } = (await store.get('a{b}:*'))!
    assert.equal(JSON.parse((await client.get('{names}:policy:a{b}:*'))!), { format: 1, version, ...MINUTE })
    assert.is(await client.object('ENCODING', '{names}:revision'), 'int')
  }))

test('bytes that are no text are named, listed and replaced', () =>
  withClient(async (client) => {
    const store = redisConfig({ client, prefix: 'bytes' })
    const names = new RedisNames('bytes', 0)
    for (const [key, bytes] of Object.entries({ a: Buffer.from([0xff, 0xfe, 0]), b: Buffer.alloc(0) })) {
      await client.set(names.policyOf(key), bytes)
      await client.zadd(names.keys, 0, key)
      try {
        await store.get(key)
        assert.unreachable()
      } catch (error) {
        assert.is((error as MillraceError).code, 'ERR_MILLRACE_INVALID_POLICY')
      }
    }
    for (const { error } of (await store.list()) as readonly { error?: MillraceError }[])
      assert.instance(error, MillraceError)
    await store.put('a', MINUTE)
    assert.equal((await store.get('a'))?.policy, MINUTE)
    assert.is(await store.delete('b'), true)
  }))

test('a page is full although listed keys have lost their documents', () =>
  withClient(async (client) => {
    const store = redisConfig({ client, prefix: 'page' })
    const keys = Array.from({ length: 20 }, (_, i) => `key ${String(i).padStart(2, '0')}`)
    for (const key of keys) await store.put(key, MINUTE)
    const names = new RedisNames('page', 0)
    await client.del(keys.slice(2, 9).map((key) => names.policyOf(key)))
    const page = await store.list({ limit: 5, prefix: 'key' })
    assert.equal(
      page.map(({ key }) => key),
      [...keys.slice(0, 2), ...keys.slice(9, 12)],
    )
  }))

test('stores in two databases of a server have nothing to do with each other', () =>
  withClient((first) =>
    withClient(
      async (second) => {
        const [a, b] = [redisConfig({ client: first }), redisConfig({ client: second })]
        await a.put('own', MINUTE) // the first change of all tells that any policy may have changed
        const seen: unknown[] = []
        a.watch((change) => void seen.push(change))
        await poll(() => seen.length > 0, 'the subscription')
        seen.length = 0
        await b.put('key', MINUTE)
        assert.is(await a.get('key'), undefined)
        await a.put('own', MINUTE)
        await poll(() => seen.length >= 2, 'its own change, told at once and by its message')
        assert.equal(seen, [{ keys: ['own'] }, { keys: ['own'] }])
        await a.close()
      },
      { db: 1 },
    ),
  ))

test('the subscription is there while there are listeners, and the client stays open', () =>
  withClient(async (client) => {
    const store = redisConfig({ client, prefix: 'close' })
    const channel = new RedisNames('close', 0).channel
    const subscriptions = async () => ((await client.pubsub('NUMSUB', channel)) as [string, number])[1]
    await store.put('a', MINUTE)
    assert.is(await subscriptions(), 0)
    const ends = [store.watch(() => {}), store.watch(() => {})]
    await poll(async () => (await subscriptions()) === 1, 'the subscription')
    ends[0]!()
    assert.is(await subscriptions(), 1)
    ends[1]!()
    await poll(async () => (await subscriptions()) === 0, 'its end')
    store.watch(() => {})
    await poll(async () => (await subscriptions()) === 1, 'another one')
    await store.close()
    await poll(async () => (await subscriptions()) === 0, 'its end by close')
    assert.is(await client.ping(), 'PONG')
  }))

test('many stores share the listeners on a client', () =>
  withClient(async (client) => {
    const before = client.listenerCount('ready')
    for (let i = 0; i < 50; i++) redisConfig({ client, prefix: `store ${i}` })
    assert.is(client.listenerCount('ready'), before + 1)
  }))

test.run()
