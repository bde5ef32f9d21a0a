// The places of the conformance suite whose limiters are on Redis, and what places on a server have in common. `shards`
// are two servers while their list changes, so that about half of the keys are charged at both.
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { type AsyncLimiter, group, type LimiterOptions } from 'millrace'
import {
  createRedisLimiter,
  type RedisLimiterOptions,
  type RedisOptions,
  type RedisRulesOptions,
} from 'millrace/redis'
import type { Maker, Options } from '../conformance/places.js'
import type { Either } from '../engines/both.js'
import { START_MS } from '../limiter/support.js'
import { startCluster } from './cluster.js'
import { clientOf } from './cluster-limiter.js'
import { HOST } from './ports.js'
import { startRedis } from './servers.js'

/** Where limiters count. */
type Place = Pick<RedisOptions, 'client'> | Pick<RedisOptions, 'shards' | 'previousShards' | 'changeWithin'>

/** A place, and one for the limiters that can't have shards. */
interface Started {
  readonly one: Place
  readonly all: Place
}

const redisClient = async () => new Redis((await startRedis()).port, HOST, { lazyConnect: true })

const alone = (client: RedisOptions['client']): Started => ({ one: { client }, all: { client } })

/** Each starts servers, and makes a client that is never connected itself. */
const STARTS = {
  redis: async () => alone(await redisClient()),
  async shards() {
    const client = await redisClient()
    const first = { name: 'first', client }
    const second = { name: 'second', client: await redisClient() }
    const all = { shards: [first, second], previousShards: [first], changeWithin: '366d' } as const
    return { one: { client }, all }
  },
  iovalkey: async () => alone(new Valkey((await startRedis()).port, HOST, { lazyConnect: true })),
  cluster: async () => alone(clientOf(await startCluster())),
} as const satisfies Record<string, () => Promise<Started>>

const NOT_ON_SHARDS: readonly unknown[] = ['sliding-log', 'sliding-counter']

/** Whether a limiter has an algorithm that shards can't have. */
function needsOne(options: object): boolean {
  const { algorithm, rules } = options as Partial<RedisRulesOptions & { algorithm: unknown }>
  return NOT_ON_SHARDS.includes(algorithm ?? rules?.[0]?.algorithm)
}

const started = new Map<keyof typeof STARTS, Promise<Started>>()
let prefixes = 0

/** @param on one server by a client of ioredis or of iovalkey, two as shards, or a Cluster */
export async function redisMaker(on: keyof typeof STARTS): Promise<Maker> {
  const starting = started.get(on) ?? STARTS[on]()
  started.set(on, starting)
  const { one, all } = await starting
  return remoteMaker((options) => {
    const own = options as RedisLimiterOptions
    return createRedisLimiter({ ...own, ...(needsOne(own) ? one : all) })
  })
}

/** A place on a server. `create` gets the options without a client. */
export function remoteMaker(create: (options: object) => AsyncLimiter): Maker {
  let nowMs = START_MS
  const all: AsyncLimiter[] = []
  const optionsOf = new Map<Either, object>()
  const made = (options: object) => {
    const limiter = create(options)
    all.push(limiter)
    optionsOf.set(limiter, options)
    return limiter
  }
  return {
    clock: {
      now: () => nowMs,
      advance(ms) {
        nowMs += ms
        // No timer runs in a test's time. A change of the limit wakes the pending calls of `wait`.
        for (const limiter of all) void limiter.update(limiter.rule.name, { limit: limiter.rule.limit })
      },
    },
    make(options: Options) {
      const { onFull, ...own } = options as LimiterOptions
      const testTime = () => Math.floor(nowMs)
      return made({ ...own, prefix: `test ${++prefixes}`, deadline: '1m', testTime })
    },
    second: (limiter) => made(optionsOf.get(limiter)!),
    group,
    async close() {
      for (const limiter of all) await limiter.close()
    },
  }
}
