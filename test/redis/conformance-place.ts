// The place `redis` of the conformance suite, and what places on a server have in common. At full size, on every second
// day, `redis` is two servers while their list changes, so that about half of the keys are charged at both.
import { Redis } from 'ioredis'
import type { AsyncLimiter, LimiterOptions } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions, type RedisOptions } from 'millrace/redis'
import type { Group, Maker, Options } from '../conformance/places.js'
import type { Either } from '../engines/both.js'
import { START_MS } from '../limiter/support.js'
import { size } from '../size.js'
import { startRedis } from './servers.js'

const DAY_MS = 86_400_000

/** Whether keys are spread over two servers. MILLRACE_TEST_SHARDS (1 or 0) decides instead of the day. */
export const isSharded =
  process.env.MILLRACE_TEST_SHARDS === undefined
    ? size === 'full' && Math.floor(Date.now() / DAY_MS) % 2 === 0
    : process.env.MILLRACE_TEST_SHARDS === '1'

/** Where limiters count. */
type Place = Pick<RedisOptions, 'client'> | Pick<RedisOptions, 'shards' | 'previousShards' | 'changeWithin'>

const NOT_ON_SHARDS: readonly unknown[] = ['sliding-log', 'sliding-counter']

let started: Promise<{ one: Place; all: Place }> | undefined
let prefixes = 0

async function start(): Promise<{ one: Place; all: Place }> {
  const client = await connect()
  const one = { client }
  if (!isSharded) return { one, all: one }
  const first = { name: 'first', client }
  const second = { name: 'second', client: await connect() }
  return { one, all: { shards: [first, second], previousShards: [first], changeWithin: '366d' } }
}

async function connect(): Promise<Redis> {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  // It does not keep the test file running.
  client.once('ready', () => client.stream.unref())
  return client
}

export async function redisMaker(): Promise<Maker> {
  started ??= start()
  const { one, all } = await started
  return remoteMaker((options) => {
    const own = options as RedisLimiterOptions
    return createRedisLimiter({ ...own, ...(NOT_ON_SHARDS.includes(own.algorithm) ? one : all) })
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
    group: () => {
      throw new Error('limiters on a server do not join groups')
    },
    async close() {
      for (const limiter of all) await limiter.close()
    },
  } satisfies Omit<Maker, 'group'> & { group(): Group }
}
