// The client libraries that tests of a single server run with.
import { Redis } from 'ioredis'
import type { RedisLimiterOptions } from 'millrace/redis'
import { createClient } from 'redis'
import { HOST } from './ports.js'

/** Clients that are never connected: limiters make connections like theirs. */
export const CLIENTS = {
  ioredis: (port: number, host = HOST) => new Redis(port, host, { lazyConnect: true }),
  'node-redis': (port: number, host = HOST) => createClient({ url: `redis://${host}:${port}` }),
} satisfies Record<string, (port: number, host?: string) => RedisLimiterOptions['client']>

export type Library = keyof typeof CLIENTS
export const LIBRARIES = Object.keys(CLIENTS) as Library[]
