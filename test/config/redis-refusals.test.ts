// What a Redis refuses: the error names it, and nothing is half done.
import { Redis } from 'ioredis'
import type { MillraceError } from 'millrace'
import { redisConfig } from 'millrace/config/redis'
import * as assert from 'uvu/assert'
import { RedisNames } from '#millrace/config/stores/redis/redis-script.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'

const MINUTE = { limit: 100, window: '1m' } as const
const NAMES = new RedisNames('refusals', 0)

type Store = ReturnType<typeof redisConfig>

async function on(
  args: readonly string[],
  act: (store: Store, port: number, client: Redis) => Promise<void>,
  { deadlineMs = 60_000, ...options }: { deadlineMs?: number } & Record<string, unknown> = {},
): Promise<void> {
  const server = await startRedis({ args })
  const client = new Redis(server.port, HOST, { retryStrategy: () => 20, ...options })
  client.on('error', () => {})
  const store = redisConfig({ client, prefix: 'refusals', deadlineMs })
  try {
    await act(store, server.port, client)
  } finally {
    await store.close()
    client.disconnect()
    await server.stop()
  }
}

async function refused(act: () => Promise<unknown>, text: RegExp): Promise<void> {
  try {
    await act()
    assert.unreachable(`expected an error like ${text}`)
  } catch (error) {
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.match((error as MillraceError).message, text)
    assert.instance((error as MillraceError).cause, Error)
  }
}

test('WRONGTYPE: a value of another type stays, and nothing is written', () =>
  on([], async (store, port) => {
    for (const name of [NAMES.policyOf('a'), NAMES.keys, NAMES.revision]) {
      await sendOnce(port, 'RPUSH', name, 'x')
      await refused(() => store.put('a', MINUTE), /WRONGTYPE/)
      assert.equal(await sendOnce(port, 'KEYS', '*'), [name])
      await sendOnce(port, 'DEL', name)
    }
    await sendOnce(port, 'SET', NAMES.keys, 'x')
    await refused(() => store.list(), /WRONGTYPE/)
    await sendOnce(port, 'DEL', NAMES.keys)
    await sendOnce(port, 'SET', NAMES.revision, 'x')
    await refused(() => store.put('a', MINUTE), /revision is not a number/)
    assert.equal(await sendOnce(port, 'KEYS', '*'), [NAMES.revision])
  }))

test('NOAUTH: a client without the password', () =>
  on(
    ['--requirepass', 'secret'],
    async (store, _, client) => {
      await new Promise<unknown>((resolve) => void client.once('error', resolve))
      const seen: unknown[] = []
      store.watch(({ error }) => void seen.push(error?.code))
      await refused(() => store.get('a'), /NOAUTH/)
      await refused(() => store.put('a', MINUTE), /NOAUTH/)
      await poll(() => seen.includes('ERR_MILLRACE_CONFIG_STORE'), 'the fault of the watch')
    },
    { deadlineMs: 300 },
  ))

test('NOPERM: a user who may not write', () =>
  on(
    ['--user', 'reader', 'on', '>secret', '~*', '&*', '+@read', '+@connection', '+info', '+subscribe'],
    async (store) => {
      assert.is(await store.get('a'), undefined)
      await refused(() => store.put('a', MINUTE), /NOPERM/)
    },
    { username: 'reader', password: 'secret' },
  ))

test('READONLY: a replica refuses changes, and is read', () =>
  on([], async (store, port) => {
    await store.put('a', MINUTE)
    const unreachable = 1
    await sendOnce(port, 'REPLICAOF', HOST, unreachable)
    await refused(() => store.put('a', { limit: 1, window: '1s' }), /READONLY/)
    assert.equal((await store.get('a'))?.policy, MINUTE)
  }))

test('OOM: a server without memory refuses puts as a whole, and deletes', () =>
  on([], async (store, port) => {
    await store.put('a', MINUTE)
    await store.put('c', MINUTE)
    const before = await sendOnce(port, 'GET', NAMES.revision)
    await sendOnce(port, 'CONFIG', 'SET', 'maxmemory', '1')
    await refused(() => store.put('b', MINUTE), /OOM/)
    await refused(() => store.put('a', { limit: 1, window: '1s' }), /OOM/)
    assert.is(await sendOnce(port, 'GET', NAMES.revision), before)
    assert.equal((await store.get('a'))?.policy, MINUTE)
    const keys = async () => (await store.list()).map(({ key }) => key)
    assert.equal(await keys(), ['a', 'c'])
    assert.is(await store.delete('a'), true)
    assert.equal([await store.get('a'), await keys()], [undefined, ['c']])
    assert.is(Number(await sendOnce(port, 'GET', NAMES.revision)), Number(before) + 1)
    await sendOnce(port, 'DEL', NAMES.revision)
    assert.is(await store.delete('c'), true, 'also when the number of changes has been lost')
    assert.equal(await sendOnce(port, 'KEYS', '*'), [NAMES.revision])
  }))

test('a server that may forget policies is refused before the first one', () =>
  on(['--maxmemory-policy', 'allkeys-lru'], async (store, port) => {
    await refused(() => store.put('a', MINUTE), /allkeys-lru may forget policies/)
    assert.equal(await sendOnce(port, 'KEYS', '*'), [])
    await sendOnce(port, 'CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
    await store.put('a', MINUTE)
  }))

test.run()
