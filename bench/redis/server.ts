// The Redis servers that are measured are started as those of the tests.
import { spawnSync } from 'node:child_process'
import { type RedisServer, SERVER, startRedis } from '../../test/redis/servers.js'

export type { RedisServer } from '../../test/redis/servers.js'

/** Why Redis can't be measured here; undefined if it can. */
export function redisMissing(): string | undefined {
  return spawnSync(SERVER, ['--version']).error && `${SERVER} is not installed`
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
