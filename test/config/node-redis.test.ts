// The store by a client of node-redis, of the oldest and the newest version: lost connections, and what is told of them.
import { MillraceError } from 'millrace'
import { type ConfigChange, type ConfigStore, redisConfig } from 'millrace/config/redis'
import type { createClient } from 'redis'
import * as assert from 'uvu/assert'
import { RedisNames } from '#millrace/config/stores/redis/redis-script.js'
import { poll } from '../redis/poll.js'
import type { Server } from '../redis/process.js'
import { startProxy, type TcpProxy } from '../redis/proxy.js'
import { leavingNothing } from '../redis/resources.js'
import { startRedis } from '../redis/servers.js'
import { redisTest as test } from '../redis/skip.js'
import { VERSIONS } from '../redis/versions.js'
import { sendOnce } from '../redis/wire.js'

const MINUTE = { limit: 100, window: '1m' } as const
const HOUR = { limit: 5, window: '1h' } as const
/** Far longer than a test takes. */
const LONG_MS = 60_000

type Client = ReturnType<typeof createClient>

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

interface Scene {
  readonly client: Client
  readonly names: RedisNames
  open(options?: object): ConfigStore
}

const isAny = ({ keys, error }: ConfigChange): boolean => keys === undefined && error === undefined
const isFault = ({ error }: ConfigChange): boolean => error?.code === 'ERR_MILLRACE_CONFIG_STORE'

async function refused(act: () => Promise<unknown>, text: RegExp): Promise<void> {
  const error = await act().then(
    () => assert.unreachable(`expected an error like ${text}`),
    (reason) => reason,
  )
  assert.instance(error, MillraceError)
  assert.is(error.code, 'ERR_MILLRACE_CONFIG_STORE')
  assert.match(error.message, text)
}

function watched(store: ConfigStore): ConfigChange[] {
  const seen: ConfigChange[] = []
  store.watch((change) => void seen.push(change))
  return seen
}

let prefixes = 0

for (const clients of VERSIONS.filter(({ library }) => library === 'redis')) {
  const claim = (name: string, act: (scene: Scene) => Promise<void>) =>
    test(`redis ${clients.version}: ${name}`, () =>
      leavingNothing(async () => {
        const prefix = `node-redis ${++prefixes}`
        const client = clients.single(proxy.port) as unknown as Client
        const stores: ConfigStore[] = []
        client.on('error', () => {})
        client.connect().catch(() => {})
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
          if (client.isOpen) client.destroy()
        }
        await poll(() => proxy.open === 0, 'the end of all connections')
      }))

  for (const lost of ['reply', 'request'] as const)
    claim(
      `a change whose ${lost} is lost is stored once, and acknowledged`,
      async ({ client, open, names }) => {
        const store = open()
        const first = await store.put('a', MINUTE)
        const before = Number(await sendOnce(server.port, 'GET', names.revision))
        const cut = proxy.cut
        const send = client.sendCommand.bind(client)
        client.sendCommand = ((command: readonly string[], options: object) => {
          if (command[0] !== 'EVAL') return send(command as string[], options)
          client.sendCommand = send as never
          if (lost === 'reply') proxy.cutReplies()
          else proxy.cutRequests()
          return send(command as string[], options)
        }) as never
        const second = await store.put('a', HOUR, { ifVersion: first.version })
        assert.equal(await store.get('a'), second)
        assert.is(proxy.cut, cut + 1)
        assert.is(Number(await sendOnce(server.port, 'GET', names.revision)), before + 1)
      },
    )

  claim(
    'down at the start: calls reject with the reason, and succeed once the server is there',
    async (scene) => {
      proxy.refuse()
      proxy.cutAll()
      const store = scene.open({ deadlineMs: 300 })
      const seen = watched(store)
      await refused(() => store.get('a'), /no connection to Redis within 300 ms: .*ECONNREFUSED/)
      await poll(() => seen.some(isFault), 'the fault')
      await proxy.accept()
      await scene.open().put('a', MINUTE)
      await poll(() => seen.some(isAny), 'the end of the fault')
    },
  )

  claim('a server that hangs: calls settle by their deadline', async ({ open }) => {
    const store = open({ deadlineMs: 100 })
    await open().put('a', MINUTE)
    proxy.hold()
    await refused(() => store.get('a'), /no reply of Redis within 100 ms/)
    await refused(() => store.put('b', MINUTE), /no reply/)
    proxy.release()
    assert.equal((await open().get('a'))?.policy, MINUTE)
  })

  claim('a subscription that is cut off is told once, and made anew', async ({ open }) => {
    const [store, other] = [open({ pollMs: 50 }), open()]
    await other.put('first', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    for (let i = 0; i < 2; i++) {
      seen.length = 0
      await sendOnce(server.port, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
      await poll(() => seen.some(isAny), 'the end of the fault')
      assert.is(seen.filter(isFault).length, 1)
      await other.put(`key ${i}`, MINUTE)
      await poll(() => seen.some(({ keys }) => keys?.includes(`key ${i}`)), 'a change by another store')
    }
  })

  claim('a server that has started again empty: no policies, and listeners know', async ({ open }) => {
    const store = open({ pollMs: 50 })
    await store.put('a', MINUTE)
    const seen = watched(store)
    await poll(() => seen.some(isAny), 'the subscription')
    seen.length = 0
    await server.restart()
    await poll(() => seen.some(isFault) && seen.some(isAny), 'the fault and its end')
    assert.is(await store.get('a'), undefined)
    await store.put('a', HOUR)
    assert.is((await store.list()).length, 1)
  })

  claim(
    'a client that has ended is named at once; one that is connected again serves',
    async ({ client, open }) => {
      const store = open()
      await store.put('a', MINUTE)
      client.destroy()
      await refused(() => store.get('a'), /the client of Redis is closed/)
      await client.connect()
      assert.equal((await store.get('a'))?.policy, MINUTE)
    },
  )
}

test.run()
