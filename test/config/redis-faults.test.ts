// The store while Redis is down, slow, silent, empty or refuses: named errors, and no write that nobody has asked for.
import { Redis } from 'ioredis'
import { MillraceError } from 'millrace'
import { type ConfigChange, redisConfig } from 'millrace/config/redis'
import * as assert from 'uvu/assert'
import { RedisNames } from '#millrace/config/stores/redis/redis-script.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { startProxy, type TcpProxy } from '../redis/proxy.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { sendOnce } from '../redis/wire.js'

const MINUTE = { limit: 100, window: '1m' } as const
const HOUR = { limit: 5, window: '1h' } as const
/** Far longer than a test takes. */
const LONG_MS = 60_000

let server: Server
let proxy: TcpProxy
test.before(async () => {
  server = await startRedis()
  proxy = await startProxy(server.port)
})
test.after(async () => {
  proxy.close()
  await server.stop()
})

let prefixes = 0

interface Scene {
  readonly client: Redis
  readonly names: RedisNames
  open(options?: object): ReturnType<typeof redisConfig>
}

/** A client that connects by the proxy and tries again soon. */
async function scene(act: (scene: Scene) => Promise<void>, options: object = {}): Promise<void> {
  const prefix = `faults ${++prefixes}`
  const client = new Redis(proxy.port, HOST, { retryStrategy: () => 20, ...options })
  const stores: ReturnType<typeof redisConfig>[] = []
  client.on('error', () => {})
  const open = (more: object = {}) => {
    stores.push(redisConfig({ client, prefix, deadlineMs: LONG_MS, ...more }))
    return stores.at(-1)!
  }
  try {
    await act({ client, names: new RedisNames(prefix, 0), open })
  } finally {
    proxy.restore()
    await proxy.accept()
    for (const store of stores) await store.close()
    client.disconnect()
  }
}

async function refused(act: () => Promise<unknown>, text: RegExp): Promise<void> {
  try {
    await act()
  } catch (error) {
    assert.instance(error, MillraceError)
    assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_STORE')
    assert.match((error as MillraceError).message, text)
    assert.instance((error as MillraceError).cause, Error)
    return
  }
  assert.unreachable(`expected an error like ${text}`)
}

/** What a store tells. */
function watched(store: ReturnType<typeof redisConfig>): ConfigChange[] {
  const seen: ConfigChange[] = []
  store.watch((change) => void seen.push(change))
  return seen
}

const isAny = ({ keys, error }: ConfigChange): boolean => keys === undefined && error === undefined
const isFault = ({ error }: ConfigChange): boolean => error?.code === 'ERR_MILLRACE_CONFIG_STORE'

test('down at the start: calls reject with the reason, and succeed once the server is there', () => {
  proxy.refuse()
  return scene(async ({ client, open }) => {
    const store = open({ deadlineMs: 100 })
    await new Promise<unknown>((resolve) => void client.once('error', resolve))
    const seen = watched(store)
    for (const act of [() => store.get('a'), () => store.put('a', MINUTE), () => store.list()])
      await refused(act, /^redis: .*no connection to Redis within 100 ms: .*ECONNREFUSED/)
    await poll(() => seen.length > 0, 'the fault')
    assert.is(seen.filter(isFault).length, 1, 'it is told once')
    await proxy.accept()
    await open().put('a', MINUTE)
    await poll(() => seen.some(isAny), 'the end of the fault')
  })
})

test('a server that hangs: calls settle by their deadline', () =>
  scene(async ({ open }) => {
    const store = open({ deadlineMs: 100, pollMs: 50 })
    const patient = open()
    await patient.put('a', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    proxy.hold()
    await refused(() => store.get('a'), /no reply of Redis within 100 ms/)
    await refused(() => store.put('b', MINUTE), /no reply/)
    await refused(() => store.list(), /no reply/)
    await poll(() => seen.some(isFault), 'the fault')
    seen.length = 0
    proxy.release()
    await poll(() => seen.some(isAny), 'the end of the fault')
    assert.equal((await patient.get('a'))?.policy, MINUTE)
    assert.is(await patient.get('b'), undefined, 'a put that has not read is not made later')
  }))

test('a command does not wait in a client without a connection, to be sent after its caller has given up', () =>
  scene(async ({ client, open, names }) => {
    const store = open({ deadlineMs: 50 })
    await open().put('a', MINUTE)
    proxy.refuse()
    proxy.cutAll()
    await poll(() => client.status !== 'ready', 'the loss of the connection')
    await refused(() => store.put('a', HOUR), /no connection/)
    await proxy.accept()
    await client.ping()
    assert.match(await sendOnce(server.port, 'GET', names.policyOf('a')), /"limit":100/)
  }))

for (const autoResendUnfulfilledCommands of [true, false])
  for (const lost of ['reply', 'request'] as const)
    test(`a ${lost} is lost (resent by the client: ${autoResendUnfulfilledCommands}): the change is made once`, () =>
      scene(
        async ({ client, open, names }) => {
          const store = open()
          const first = await store.put('a', MINUTE)
          const call = client.callBuffer.bind(client)
          client.callBuffer = ((command: string, ...args: string[]) => {
            if (command === 'EVAL' && lost === 'reply') proxy.cutReplies()
            if (command === 'EVAL' && lost === 'request') proxy.cutRequests()
            return call(command, ...args)
          }) as typeof client.callBuffer
          const revision = async () => Number(await sendOnce(server.port, 'GET', names.revision))
          const before = await revision()
          const cut = proxy.cut
          // One write a connection is cut: the next one on it passes.
          const once = async <T>(act: () => Promise<T>): Promise<T> => act().finally(() => proxy.restore())
          client.on('close', () => {
            client.callBuffer = call as typeof client.callBuffer
          })
          const second = await once(() => store.put('a', HOUR, { ifVersion: first.version }))
          assert.equal(await store.get('a'), second)
          assert.is(proxy.cut, cut + 1)
          assert.is(await revision(), before + 1, 'the revision counts it once')
        },
        { autoResendUnfulfilledCommands },
      ))

test('the reply to a deletion is lost: it is a deletion all the same', () =>
  scene(async ({ client, open }) => {
    const store = open()
    const { version } = await store.put('a', MINUTE)
    const call = client.callBuffer.bind(client)
    client.callBuffer = ((command: string, ...args: string[]) => {
      if (command === 'EVAL') proxy.cutReplies()
      client.callBuffer = command === 'EVAL' ? (call as typeof client.callBuffer) : client.callBuffer
      return call(command, ...args)
    }) as typeof client.callBuffer
    assert.is(await store.delete('a', { ifVersion: version }), true)
    assert.is(await store.get('a'), undefined)
  }))

test('a change by somebody else in the meantime is not overwritten after a lost reply', () =>
  scene(async ({ client, open, names }) => {
    const store = open()
    const { version } = await store.put('a', MINUTE)
    const call = client.callBuffer.bind(client)
    client.callBuffer = ((command: string, ...args: string[]) => {
      if (command !== 'EVAL') return call(command, ...args)
      client.callBuffer = call as typeof client.callBuffer
      const other = { format: 1, version: version + 1e9, limit: 7, window: '1m' }
      const overwritten = sendOnce(server.port, 'SET', names.policyOf('a'), JSON.stringify(other))
      return overwritten.then(() => {
        proxy.cutRequests()
        return call(command, ...args)
      })
    }) as typeof client.callBuffer
    try {
      await store.put('a', HOUR, { ifVersion: version })
      assert.unreachable()
    } catch (error) {
      assert.is((error as MillraceError).code, 'ERR_MILLRACE_CONFIG_CONFLICT')
    }
    assert.equal((await store.get('a'))?.policy, { limit: 7, window: '1m' })
  }))

test('a lost message is noticed by the revision', () =>
  scene(async ({ open, names }) => {
    const seen = watched(open({ pollMs: 20 }))
    await poll(() => seen.some(isAny), 'the subscription')
    seen.length = 0
    await sendOnce(server.port, 'INCR', names.revision)
    await poll(() => seen.some(isAny), 'the change whose message nobody has sent')
  }))

test('a message with a gap before it tells that anything may have changed', () =>
  scene(async ({ open, names }) => {
    const store = open({ pollMs: 60_000 })
    await store.put('a', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    await store.put('a', MINUTE)
    await poll(() => seen.filter(({ keys }) => keys?.[0] === 'a').length === 2, 'the message')
    seen.length = 0
    await sendOnce(server.port, 'INCR', names.revision)
    await store.put('a', HOUR)
    await poll(() => seen.some(isAny), 'the gap')
  }))

test('a subscription that is cut off is told once, and made anew', () =>
  scene(async ({ open }) => {
    const [store, other] = [open({ pollMs: 50 }), open()]
    await other.put('first', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    for (let i = 0; i < 3; i++) {
      seen.length = 0
      await sendOnce(server.port, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
      await poll(() => seen.some(isAny), 'the end of the fault')
      assert.is(seen.filter(isFault).length, 1)
      await other.put(`key ${i}`, MINUTE)
      await poll(() => seen.some(({ keys }) => keys?.includes(`key ${i}`)), 'a change by another store')
    }
  }))

test('a subscription on which nothing arrives any more is noticed by the revision, and made anew', () =>
  scene(async ({ client, open, names }) => {
    const store = open({ pollMs: 50 })
    await store.put('a', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    proxy.forgetOpen()
    client.disconnect(true)
    seen.length = 0
    await poll(() => seen.some(isAny), 'the new connection of the client')
    seen.length = 0
    await sendOnce(server.port, 'INCR', names.revision)
    await poll(() => seen.some(isFault), 'the end of the subscription')
    await poll(() => isAny(seen.at(-1)!), 'another one')
    await store.put('a', HOUR)
    await poll(() => seen.filter(({ keys }) => keys?.includes('a')).length === 2, 'a change, told twice')
  }))

test('a server that has started again empty: no policies, and listeners know', () =>
  scene(async ({ open }) => {
    const store = open({ pollMs: 50 })
    await store.put('a', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    seen.length = 0
    await server.restart()
    await poll(() => seen.some(isFault) && seen.some(isAny), 'the fault and its end')
    assert.is(await store.get('a'), undefined)
    assert.equal(await store.list(), [])
    await store.put('a', HOUR)
    assert.is((await store.list()).length, 1)
  }))

test('FLUSHALL is noticed by the revision', () =>
  scene(async ({ open }) => {
    const store = open({ pollMs: 20 })
    await store.put('a', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    seen.length = 0
    await sendOnce(server.port, 'FLUSHALL')
    await poll(() => seen.some(isAny), 'that anything may have changed')
  }))

test('a client that has ended is named at once', () =>
  scene(async ({ client, open }) => {
    const store = open()
    await store.put('a', MINUTE)
    client.disconnect()
    await poll(() => client.status === 'end', 'its end')
    await refused(() => store.get('a'), /the client of Redis is closed/)
  }))

test.run()
