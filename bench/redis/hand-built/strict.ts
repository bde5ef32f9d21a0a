import { Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import { admittedAt } from '../../../demo/redis/server-time.js'
import { HOST } from '../../../test/redis/ports.js'
import type { Recipe } from './recipes.js'

/** Granules of a window. They are whole milliseconds, by which the time of an admission is known. */
const GRANULES = 20

/** Millrace's strict limiter, each caller with a limiter and a connection of its own. */
export const strict: Recipe = async (port, { limit, windowMs }) => {
  const client = new Redis(port, HOST, { lazyConnect: true })
  const granularityMs = windowMs / GRANULES
  const limiter = createRedisLimiter({
    ...{ client, prefix: 'strict', limit, window: windowMs, granularity: granularityMs, deadline: '10s' },
  })
  await limiter.ready()
  return {
    async decide(key) {
      const sentMs = Date.now()
      const { allowed, source, resetMs } = await limiter.check(key)
      if (source !== 'redis') throw new Error(`decided by '${source}'`)
      const receivedMs = Date.now()
      if (!allowed) return { allowed, tries: 1, atMs: receivedMs }
      const atMs = admittedAt({ sentMs, receivedMs, resetMs, granularityMs })
      if (atMs === undefined) throw new Error('admitted at a time that is not between request and reply')
      return { allowed, tries: 1, atMs }
    },
    // Redis runs the script as a whole or not at all: a decision has no other steps.
    async die(key) {
      void limiter.check(key)
      await limiter.close()
    },
    close: () => limiter.close(),
  }
}
