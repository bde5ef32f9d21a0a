// The Redis servers that are measured are started as those of the tests.
import type { Server } from '../../test/redis/process.js'
import { isInstalled, missing } from '../../test/redis/programs.js'
import { startRedis } from '../../test/redis/servers.js'

export type RedisServer = Server

/** Why Redis can't be measured here; undefined if it can. */
export function redisMissing(): string | undefined {
  return isInstalled('redis-server') ? undefined : missing('redis-server')
}

/** Starts an empty server, and stops it when `use` has ended. */
export async function withRedis<T>(use: (server: RedisServer) => Promise<T>): Promise<T> {
  const server = await startRedis()
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}
