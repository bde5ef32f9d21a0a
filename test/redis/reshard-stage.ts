// Servers, limiters over some of them, and a clock, for tests of changes of the list of servers.
import { Redis } from 'ioredis'
import {
  createRedisLimiter,
  type RedisLimiter,
  type RedisLimiterOptions,
  type RedisShard,
} from 'millrace/redis'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { HOST } from './ports.js'
import { keysThat, type ShardServer, withServers } from './sharded-servers.js'
import { redisTest as test } from './skip.js'

export const WINDOW_MS = 60_000
export const GRANULE_MS = 1_000
/** A unit counts for so long at most. */
export const COUNTS_MS = WINDOW_MS + GRANULE_MS
export const RULE = {
  prefix: 'test',
  limit: 10,
  window: WINDOW_MS,
  granularity: GRANULE_MS,
  deadline: '1m',
} as const
/** A change takes so long: the deadline and changeWithin are in it. */
export const CHANGE_MS = COUNTS_MS + 60_000 + GRANULE_MS
const START_MS = 1_800_000_000_000

export const named = ({ name, client }: ShardServer): RedisShard => ({ name, client })
export const over = (servers: readonly ShardServer[]) =>
  new Rendezvous(servers.map((server) => [server.name, server] as const))

interface Stage {
  readonly servers: readonly ShardServer[]
  readonly clock: { ms: number }
  /** Makes a limiter over the first `count` servers. */
  make(count: number, options?: Partial<RedisLimiterOptions>): RedisLimiter
  /** A key that is on server `from` of the first `before` servers, and on server `to` of the first `after`. */
  moving(before: number, after: number): string
}

/** Tests with servers and a clock that the test turns. */
export function reshardTest(name: string, count: number, act: (stage: Stage) => Promise<void>): void {
  test(name, () =>
    withServers(count, async (servers) => {
      const clock = { ms: START_MS }
      const limiters: RedisLimiter[] = []
      const stage: Stage = {
        servers,
        clock,
        make(first, options = {}) {
          const shards = servers.slice(0, first).map(named)
          const limiter = createRedisLimiter({
            ...RULE,
            shards,
            changeWithin: GRANULE_MS,
            testTime: () => clock.ms,
            ...options,
          })
          limiters.push(limiter)
          return limiter
        },
        moving: (before, after) =>
          keysThat(
            (key) => over(servers.slice(0, before)).find(key) !== over(servers.slice(0, after)).find(key),
          )[0]!,
      }
      try {
        await act(stage)
      } finally {
        for (const limiter of limiters) await limiter.close()
      }
    }),
  )
}

/** The units of a key on one server. */
export const usedAt = async ({ server }: ShardServer, key: string): Promise<number> => {
  const client = new Redis(server.port, HOST)
  const limiter = createRedisLimiter({ ...RULE, client, testTime: () => START_MS })
  try {
    return await limiter.usage(key)
  } finally {
    await limiter.close()
    client.disconnect()
  }
}
