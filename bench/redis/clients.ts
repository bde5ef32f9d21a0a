// The client libraries, each with a limiter of Millrace or one of rate-limiter-flexible.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'

export const CLIENTS = ['ioredis', 'node-redis'] as const
export type ClientName = (typeof CLIENTS)[number]

interface Connected {
  readonly client: RedisLimiterOptions['client']
  close(): void
}

/** Errors of a lost connection are part of the measurement. */
const ignore = (): void => {}

const CONNECT: Record<ClientName, (port: number) => Promise<Connected>> = {
  async ioredis(port) {
    const client = new Redis(port, '127.0.0.1')
    client.on('error', ignore)
    return { client, close: () => client.disconnect() }
  },
  async 'node-redis'(port) {
    const client = createClient({ url: `redis://127.0.0.1:${port}` })
    client.on('error', ignore)
    await client.connect()
    return { client: client as RedisLimiterOptions['client'], close: () => client.destroy() }
  },
}

export async function withMillrace<T>(
  name: ClientName,
  port: number,
  options: Omit<RedisLimiterOptions, 'client' | 'prefix'>,
  use: (limiter: RedisLimiter) => Promise<T>,
): Promise<T> {
  const { client, close } = await CONNECT[name](port)
  const limiter = createRedisLimiter({ ...options, client, prefix: 'bench' })
  try {
    await limiter.ready()
    return await use(limiter)
  } finally {
    await limiter.close()
    close()
  }
}

export async function withFlexible<T>(
  name: ClientName,
  port: number,
  options: { readonly points: number; readonly duration: number },
  use: (limiter: RateLimiterRedis) => Promise<T>,
): Promise<T> {
  const { client, close } = await CONNECT[name](port)
  try {
    const own = { storeClient: client, useRedisPackage: name === 'node-redis' }
    return await use(new RateLimiterRedis({ ...options, ...own }))
  } finally {
    close()
  }
}
