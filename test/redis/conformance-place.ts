// The places of the conformance suite whose limiters are on Redis.
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { group, type LimiterOptions } from 'millrace'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import type { Maker, Options } from '../conformance/places.js'
import type { Either } from '../engines/both.js'
import { START_MS } from '../limiter/support.js'
import { startCluster } from './cluster.js'
import { clientOf } from './cluster-limiter.js'
import { HOST } from './ports.js'
import { startRedis } from './servers.js'

type Client = Parameters<typeof createRedisLimiter>[0]['client']

/** Each starts servers, and makes a client that is never connected itself. */
const STARTS = {
  redis: async () => new Redis((await startRedis()).port, HOST, { lazyConnect: true }),
  iovalkey: async () => new Valkey((await startRedis()).port, HOST, { lazyConnect: true }),
  cluster: async () => clientOf(await startCluster()),
} as const satisfies Record<string, () => Promise<Client>>

const started = new Map<keyof typeof STARTS, Promise<Client>>()
let prefixes = 0

/** @param on one server by a client of ioredis or of iovalkey, or a Cluster */
export async function redisMaker(on: keyof typeof STARTS): Promise<Maker> {
  const starting = started.get(on) ?? STARTS[on]()
  started.set(on, starting)
  const client = await starting
  let nowMs = START_MS
  const all: RedisLimiter[] = []
  const optionsOf = new Map<Either, Parameters<typeof createRedisLimiter>[0]>()
  const made = (options: Parameters<typeof createRedisLimiter>[0]) => {
    const limiter = createRedisLimiter(options)
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
      return made({ ...own, client, prefix: `test ${++prefixes}`, deadline: '1m', testTime })
    },
    second: (limiter) => made(optionsOf.get(limiter)!),
    group,
    async close() {
      for (const limiter of all) await limiter.close()
    },
  }
}
