// Servers for tests, on 127.0.0.1 and a free port, without persistence.
import { userInfo } from 'node:os'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { type Server, startServer } from './process.js'
import { ReplyError, sendOnce } from './wire.js'

export interface RedisOptions {
  /** More arguments of redis-server: `['--maxmemory', '10mb']`. They may change all but the port and the log. */
  readonly args?: readonly string[] | ((port: number) => readonly string[] | Promise<readonly string[]>)
  /** A folder for its files, instead of a temporary one. `restart` keeps what is in it. */
  readonly dir?: string
  /** Variables of its environment, beside those of this process. */
  readonly env?: NodeJS.ProcessEnv
}

/** No snapshots and no log of writes. A replica need not wait for others before it gets its copy. */
const REDIS_ARGS = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0']

/** Starts a Redis and resolves when it answers. */
export async function startRedis({ args = [], dir, env }: RedisOptions = {}): Promise<Server> {
  const server = await startServer({
    program: 'redis-server',
    args: async (port, folder) => [
      ...['--port', String(port), '--bind', HOST, '--dir', folder, ...REDIS_ARGS],
      ...(typeof args === 'function' ? await args(port) : args),
    ],
    ready: /Ready to accept connections/,
    dir,
    env,
  })
  await answers(server.port)
  return server
}

/** Resolves when a server replies to PING, or refuses to without a password. */
export async function answers(port: number): Promise<void> {
  await poll(async () => {
    try {
      return (await sendOnce(port, 'PING')) === 'PONG'
    } catch (error) {
      return error instanceof ReplyError && error.code === 'NOAUTH'
    }
  }, `an answer of the server on port ${port}`)
}

/** Starts a memcached and resolves when it listens. */
export function startMemcached({ args = [] }: { readonly args?: readonly string[] } = {}): Promise<Server> {
  const { uid, username } = userInfo()
  // memcached runs as root only if it is told to; with -vv it prints that it listens
  const user = uid === 0 ? ['-u', username] : []
  return startServer({
    program: 'memcached',
    args: (port) => ['-l', HOST, '-p', String(port), ...user, '-vv', ...args],
    ready: /server listening/,
  })
}
