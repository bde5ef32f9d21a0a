// The place `redis` of the conformance suite, and what places on a server have in common.
import { Redis } from 'ioredis'
import type { AsyncLimiter, LimiterOptions } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import type { Group, Maker, Options } from '../conformance/places.js'
import type { Either } from '../engines/both.js'
import { START_MS } from '../limiter/support.js'
import { startRedis } from './servers.js'

let started: Promise<Redis> | undefined
let prefixes = 0

async function start(): Promise<Redis> {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  // It does not keep the test file running.
  client.once('ready', () => client.stream.unref())
  return client
}

export async function redisMaker(): Promise<Maker> {
  started ??= start()
  const client = await started
  return remoteMaker((options) => createRedisLimiter({ ...(options as RedisLimiterOptions), client }))
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
    group: () => {
      throw new Error('limiters on a server do not join groups')
    },
    async close() {
      for (const limiter of all) await limiter.close()
    },
  } satisfies Omit<Maker, 'group'> & { group(): Group }
}
