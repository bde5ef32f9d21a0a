// run: also-full
// What a process is told of an outage, by every store and policy: once when it begins, once when it ends.
import { setImmediate } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { AsyncLimiter } from 'millrace'
import { createBackendLimiter, type Values } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter, type OnOutage, type OutageChange, type RedisStats } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { clientOf } from '../memcached/limiters.js'
import { CLIENTS } from '../redis/clients.js'
import { poll } from '../redis/poll.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'
import { sized } from '../size.js'

interface Options {
  readonly prefix: string
  readonly limit: number
  readonly window: '1h'
  readonly deadline: '1s'
  readonly onOutage: OnOutage
  readonly nodes: number
  readonly onOutageChange: (change: OutageChange) => void
}
type Made = Pick<AsyncLimiter, 'ready' | 'check' | 'close'> & { stats(): Promise<unknown> }

interface Place {
  readonly name: string
  readonly store: string
  start(): Promise<Server>
  make(server: Server, options: Options): Made
}

const warnings: (Error & { code?: string })[] = []
process.on('warning', (warning) => warnings.push(warning))

/** Outages, one after the other. */
const ROUNDS = sized({ quick: [0], full: [0, 1] })
const POLICIES: readonly OnOutage[] = ['open', 'closed', 'local']

/** Values on a Redis: a backend of one's own, on a server that can be killed. */
function valuesOn(port: number): { values: Values; end(): void } {
  const client = new Redis(port, HOST, { maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  const SWAP = `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1`
  const values: Values = {
    read: async (keys) => {
      const found = await client.mgetBuffer(...keys)
      return found.map((value) => value ?? undefined)
    },
    swap: async (key, before, after, ttlMs) =>
      (await client.eval(SWAP, 1, key, Buffer.from(before ?? []), Buffer.from(after), Math.ceil(ttlMs))) ===
      1,
  }
  return { values, end: () => client.disconnect() }
}

const redisPlaces: readonly Place[] = [
  ...(['ioredis', 'node-redis'] as const).map((library) => ({
    name: `Redis by ${library}`,
    store: 'redis',
    start: startRedis,
    make: ({ port }: Server, options: Options) =>
      createRedisLimiter({ client: CLIENTS[library](port), ...options }),
  })),
  {
    name: 'Redis by transactions',
    store: 'redis',
    start: startRedis,
    make: ({ port }, options) =>
      createRedisLimiter({
        client: CLIENTS.ioredis(port),
        algorithm: 'sliding-log',
        optimistic: true,
        ...options,
      }),
  },
  {
    name: 'Redis with a configuration store',
    store: 'redis',
    start: startRedis,
    make: ({ port }, { limit, window, ...options }) =>
      createRedisLimiter({
        client: CLIENTS.ioredis(port),
        config: memoryConfig(),
        default: { limit, window },
        ...options,
      }),
  },
  {
    name: 'a backend',
    store: 'own',
    start: startRedis,
    make({ port }, options) {
      const { values, end } = valuesOn(port)
      const limiter = createBackendLimiter({ values, source: 'own', ...options })
      return {
        ready: () => limiter.ready(),
        check: (key) => limiter.check(key),
        stats: () => limiter.stats(),
        close: () => limiter.close().then(end),
      }
    },
  },
]
const memcachedPlaces: readonly Place[] = [false, true].map((strict) => ({
  name: strict ? 'Memcached, strict' : 'Memcached',
  store: 'memcached',
  start: () => startMemcached(),
  make: ({ port }, options) => createMemcachedLimiter({ client: clientOf(port), strict, ...options }),
}))

/** Warnings are emitted in the next turn. */
async function warned(prefix: string): Promise<readonly [code: string | undefined, message: string][]> {
  await setImmediate()
  return warnings
    .filter(({ message }) => message.includes(`'${prefix}'`))
    .map(({ code, message }) => [code, message])
}

async function toldOnceEach(place: Place, onOutage: OnOutage): Promise<void> {
  const changes: OutageChange[] = []
  const prefix = `seen ${place.name} ${onOutage}`.replaceAll(' ', '-').toLowerCase()
  const onOutageChange = (change: OutageChange) => changes.push(change)
  const own = { prefix, limit: 50, window: '1h', deadline: '1s', onOutage, nodes: 5 } as const
  const server = await place.start()
  const limiter = place.make(server, { ...own, onOutageChange })
  try {
    const until = (source: string) =>
      poll(async () => (await limiter.check('key', 0)).source === source, `a decision by ${source}`)
    await limiter.ready()
    await until(place.store)
    assert.equal([changes, await warned(prefix)], [[], []], 'nothing, while the store answers')
    for (const round of ROUNDS) {
      const startedMs = Date.now()
      await server.kill()
      const before = (await limiter.stats()) as RedisStats
      let [allowed, refused] = [0, 0]
      for (let i = 0; i < 20; i++) (await limiter.check('key')).allowed ? allowed++ : refused++
      const after = (await limiter.stats()) as RedisStats
      assert.is(after.withoutStore[onOutage] - before.withoutStore[onOutage], 20)
      assert.is(after.allowed - before.allowed, allowed)
      assert.is(after.denied - before.denied, onOutage === 'closed' ? 0 : refused)
      const [begun, ...none] = changes.slice(2 * round)
      assert.equal(none, [])
      assert.equal(
        [begun?.state, begun?.policy, begun?.store, begun?.prefix],
        ['outage', onOutage, place.store, prefix],
      )
      assert.ok(begun!.cause instanceof Error)
      assert.ok(begun!.since.getTime() >= startedMs && begun!.since.getTime() <= Date.now())
      await server.restart()
      await until(place.store)
      await poll(() => changes.length === 2 * round + 2, 'the end of the outage')
      const ended = changes[2 * round + 1]!
      assert.equal(ended, { ...begun, state: 'recovered' })
      assert.ok(ended.cause === begun!.cause)
    }
    const told = await warned(prefix)
    assert.equal(
      told.map(([code]) => code),
      ROUNDS.flatMap(() => ['MILLRACE_OUTAGE', 'MILLRACE_RECOVERED']),
    )
    assert.match(told[0]![1], `onOutage: '${onOutage}'`)
  } finally {
    await limiter.close()
    await server.kill()
    await server.stop()
  }
}

for (const [test, places] of [
  [redisTest, redisPlaces],
  [memcachedTest, memcachedPlaces],
] as const) {
  for (const place of places) {
    test(`${place.name}: an outage is told when it begins and when it ends, once each`, async () => {
      await Promise.all(POLICIES.map((onOutage) => toldOnceEach(place, onOutage)))
    })
  }
}

redisTest('a wrong URL warns with the first decision, also with open', async () => {
  const client = new Redis('redis://nobody.invalid:6379', { lazyConnect: true })
  const limiter = createRedisLimiter({
    client,
    prefix: 'wrong-url',
    limit: 1,
    window: '1m',
    onOutage: 'open',
  })
  assert.is((await limiter.check('key')).allowed, true)
  const [[code, message] = [] as undefined[], ...none] = await warned('wrong-url')
  assert.equal([code, none], ['MILLRACE_OUTAGE', []])
  assert.match(message!, "onOutage: 'open' allows all requests until it does")
  await limiter.close()
  assert.is((await warned('wrong-url')).length, 1, 'and the end of the limiter is no recovery')
})

redisTest('one of two shards is an outage until that one answers again', async () => {
  const servers = [await startRedis(), await startRedis()]
  const changes: string[] = []
  const limiter = createRedisLimiter({
    shards: servers.map(({ port }, i) => ({ name: `shard-${i}`, client: CLIENTS.ioredis(port) })),
    prefix: 'two-shards',
    limit: 50,
    window: '1h',
    deadline: '1s',
    onOutageChange: ({ state }) => changes.push(state),
  })
  try {
    await limiter.ready()
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`)
    const sources = async () =>
      new Set((await Promise.all(keys.map((key) => limiter.check(key)))).map(({ source }) => source))
    await poll(async () => (await sources()).size === 1, 'both shards')
    await servers[0]!.kill()
    for (let i = 0; i < 3; i++) assert.equal([...(await sources())].sort(), ['outage', 'redis'])
    assert.equal(changes, ['outage'])
    await servers[0]!.restart()
    await poll(async () => !(await sources()).has('outage'), 'the end of the outage')
    await poll(() => changes.length === 2, 'its announcement')
    assert.equal(changes, ['outage', 'recovered'])
  } finally {
    await limiter.close()
    for (const server of servers) await server.stop()
  }
})

redisTest('what a store answers is shown on one line, without escapes', async () => {
  const answer = 'no\n\u001b[31mred\u202e evil'
  const values: Values = {
    read: () => Promise.reject(new Error(answer)),
    swap: async () => true,
  }
  const limiter = createBackendLimiter({ values, source: 'own', prefix: 'inert', limit: 1, window: '1m' })
  await limiter.check('key')
  const [[, message] = [] as undefined[]] = await warned('inert')
  assert.match(message!, 'no\\u{a}\\u{1b}[31mred\\u{202e} evil')
  await limiter.close()
})

redisTest('onOutageChange is a function', async () => {
  for (const onOutageChange of [null, 'log', {}]) {
    const options = { prefix: 'bad', limit: 1, window: '1m', onOutageChange } as never
    assert.throws(() => createRedisLimiter(options), /onOutageChange: expected a function/)
  }
})

redisTest.run()
