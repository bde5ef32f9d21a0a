// Several independent servers with a client of each, for tests of sharded limiters.
import { Redis } from 'ioredis'
import type { Server } from './process.js'
import { startRedis } from './servers.js'

/** A server that is a shard of limiters. */
export interface ShardServer {
  readonly name: string
  readonly server: Server
  readonly client: Redis
}

/** Starts servers, lets a test use them, and stops them. They are named a, b, c and so on. */
export async function withServers(
  count: number,
  act: (servers: readonly ShardServer[]) => Promise<void>,
): Promise<void> {
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis()))
  const shards = servers.map((server, i) => ({
    name: String.fromCharCode(97 + i),
    server,
    client: new Redis(server.port, '127.0.0.1', { lazyConnect: true }),
  }))
  try {
    await act(shards)
  } finally {
    for (const { client } of shards) client.disconnect()
    await Promise.all(servers.map((server) => server.stop()))
  }
}

/** The keys `0`, `1`, ..., each of which has this property. */
export function keysThat(is: (key: string) => boolean, count = 1): string[] {
  const keys: string[] = []
  for (let i = 0; keys.length < count; i++) if (is(`key ${i}`)) keys.push(`key ${i}`)
  return keys
}
