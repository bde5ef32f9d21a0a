// run: once, also-full, also-long
// The model of changes (`test/limiter/changes-model.ts`) where this process has no table: on Redis, on Memcached, and in
// a store of a user's own. What an old window still counts at a change counts in each new one.
import { Redis } from 'ioredis'
import type { RuleOptions } from 'millrace'
import { type BackendLimiterOptions, createBackendLimiter, type Values } from 'millrace/backend'
import { createMemcachedLimiter, type MemcachedLimiterOptions } from 'millrace/memcached'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { createClient } from 'redis'
import { test } from 'uvu'
import { ALGORITHMS, type AlgorithmCase, twoCounters } from '../conformance/algorithms.js'
import type { Either } from '../engines/both.js'
import { type ChangingPlace, playChanges } from '../limiter/changes-model.js'
import { clientOf } from '../memcached/limiters.js'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'
import { sized } from '../size.js'

const RUNS = sized({ quick: 1, full: 2, long: 60 })
/** On a server: all that differ there. */
const ON_SERVERS = ALGORITHMS.filter(({ isAlias, isNotOnRedis }) => !isAlias && !isNotOnRedis).map(
  (anywhere): AlgorithmCase => ({ ...anywhere, ...anywhere.onRedis }),
)
const ON_VALUES = ON_SERVERS.filter(({ onlyOnRedis }) => onlyOnRedis === undefined)

/** Memcached forgets by its own clock, also in a test's time: no window is shorter than a minute. */
const FORGETTING = 60

let prefixes = 0

/** A place whose limiters are made with these options and the rule, or with a store. */
function placeOf(make: (options: object) => Either, scale: number): ChangingPlace {
  return {
    isServer: true,
    scale,
    async open(rule, clock, configs) {
      const shared = { prefix: `changes ${++prefixes}`, deadline: '1m', testTime: () => clock.now() }
      const withRule = (own: RuleOptions, config: object | undefined) =>
        config === undefined ? { ...shared, ...own } : { ...shared, config, default: own, maxWindows: 64 }
      return [make(withRule(rule, configs[0])), make(withRule(rule, configs[1]))]
    },
  }
}

function plays(
  name: string,
  register: (name: string, act: () => Promise<void>) => void,
  algorithms: readonly AlgorithmCase[],
  makes: (algorithm: AlgorithmCase) => (options: object) => Either,
  scale = 1,
): void {
  for (const [index, algorithm] of algorithms.entries()) {
    for (const hasStore of [true, false]) {
      const changes = hasStore ? 'policies come and go' : 'update changes it'
      register(`${name}, ${algorithm.name}: no window is over its limit while ${changes}`, async () => {
        const place = placeOf(makes(algorithm), scale)
        for (let run = 1; run <= RUNS; run++)
          await playChanges(place, algorithm, run * algorithms.length + index, hasStore)
      })
    }
  }
}

let redis: Server
redisTest.before(async () => {
  redis = await startRedis()
})
redisTest.after(() => redis.stop())
const byIoredis = () => new Redis(redis.port, HOST, { lazyConnect: true })
const byNodeRedis = () => createClient({ url: `redis://${HOST}:${redis.port}` })

const onRedis =
  (client: () => unknown, { onlyOnRedis }: AlgorithmCase) =>
  (options: object) =>
    createRedisLimiter({ ...(options as RedisLimiterOptions), ...onlyOnRedis, client: client() as Redis })

plays('ioredis', redisTest, sized({ quick: ON_SERVERS.slice(0, 2), full: ON_SERVERS }), (algorithm) =>
  onRedis(byIoredis, algorithm),
)
plays('node-redis', redisTest, sized({ quick: [], full: ON_SERVERS.slice(0, 1) }), (algorithm) =>
  onRedis(byNodeRedis, algorithm),
)

let memcached: Server
memcachedTest.before(async () => {
  memcached = await startMemcached()
})
memcachedTest.after(() => memcached.stop())

const onMemcached = (own: Partial<MemcachedLimiterOptions>) => () => (options: object) =>
  createMemcachedLimiter({
    ...(options as MemcachedLimiterOptions),
    ...own,
    client: clientOf(memcached.port),
  })

plays('memcached', memcachedTest, [{ ...twoCounters, options: {} }], onMemcached({}), FORGETTING)
plays(
  'memcached, strict',
  memcachedTest,
  sized({ quick: ON_VALUES.slice(0, 1), full: ON_VALUES }),
  onMemcached({ strict: true, clockSkew: 0 }),
  FORGETTING,
)

const stored = new Map<string, Uint8Array>()
const values: Values = {
  read: async (keys) => keys.map((key) => stored.get(key)),
  swap: async (key, before, after) => {
    if (stored.get(key) !== before) return false
    stored.set(key, after)
    return true
  },
}
plays(
  'backend',
  test,
  sized({ quick: ON_VALUES.slice(0, 1), full: ON_VALUES }),
  () => (options) =>
    createBackendLimiter({ ...(options as BackendLimiterOptions), values, source: 'map', clockSkew: 0 }),
)

test.run()
redisTest.run()
memcachedTest.run()
