import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import { startRedis } from '../../redis/servers.js'

export interface Expiry {
  readonly windowMs: number
  readonly granuleMs: number
  /** How long it took to charge all keys. */
  readonly chargedMs: number
  /** Keys on the server after that. */
  readonly most: number
  /** Of a sample. */
  readonly longestTtlMs: number
  /** `DBSIZE` a window and two granules after the last charge. Redis removes keys some time after their expiry. */
  readonly listed: number
  /** `DBSIZE` after a SCAN at that moment, which removes all that have expired. */
  readonly left: number
}

const GRANULES = 5
/** The window is so long that the first key is still there when the last one is charged. */
const WINDOW_MS_PER_KEY = 0.025
const SHORTEST_WINDOW_MS = 1_000
const KEYS_PER_BATCH = 6_400
const BATCHES_AT_ONCE = 2
const SAMPLE = 1_000

/** Charges so many keys once, and waits until they have expired. */
export async function runExpiry(keys: number): Promise<Expiry> {
  const granuleMs = Math.ceil(Math.max(SHORTEST_WINDOW_MS, WINDOW_MS_PER_KEY * keys) / GRANULES)
  const windowMs = GRANULES * granuleMs
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const limiter = createRedisLimiter({
    ...{ client, prefix: 'expiry', limit: 10, window: windowMs, granularity: granuleMs },
    ...{ deadline: '1m', maxKeys: 1_000 },
  })
  try {
    await limiter.ready()
    const startMs = performance.now()
    let charged = 0
    const worker = async () => {
      while (charged < keys) {
        const from = charged
        charged = Math.min(keys, charged + KEYS_PER_BATCH)
        const batch = Array.from({ length: charged - from }, (_, i) => `key ${from + i}`)
        const { allowed } = await limiter.checkMany(batch)
        if (allowed.includes(0)) throw new Error('a key was not admitted')
      }
    }
    await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, worker))
    const lastMs = performance.now()
    const most = await client.dbsize()
    const names = Array.from(
      { length: Math.min(SAMPLE, keys) },
      (_, i) => `mr:1:expiry:{key ${keys - 1 - i}}:default`,
    )
    const ttls = await Promise.all(names.map((name) => client.pttl(name)))
    await pause(Math.max(0, lastMs + windowMs + 2 * granuleMs - performance.now()))
    const listed = await client.dbsize()
    for await (const names of client.scanStream({ count: 10_000 })) names.length = 0
    const left = await client.dbsize()
    return {
      windowMs,
      granuleMs,
      chargedMs: lastMs - startMs,
      most,
      longestTtlMs: Math.max(...ttls),
      listed,
      left,
    }
  } finally {
    await limiter.close()
    client.disconnect()
    await server.stop()
  }
}
