import { MillraceError } from '../core/errors.js'
import { fromIoredis, isIoredis } from './ioredis.js'
import { fromNodeRedis, isNodeRedis } from './node-redis.js'
import { ReplicatedConnection } from './replicated-connection.js'

/** A command: its name, then its arguments. */
export type Command = readonly (string | Buffer)[]

/** What the limiter needs of a client library. No command is ever sent twice. */
export interface RedisConnection {
  /** Whether a command would go out at once. */
  readonly isReady: boolean
  /** Whether keys are spread over several nodes. */
  readonly isCluster: boolean
  /**
   * Sends a command once. Rejects if there is no connection. A lost connection may leave the promise pending.
   * @param key the key by which a Cluster finds the node
   */
  send(command: Command, key: string): Promise<unknown>
  /** Sends a command to the server, or to each primary of a Cluster, one at a time. */
  primaries(): readonly ((command: Command) => Promise<unknown>)[]
  /** Calls `listener` after each connection, the first one, too, if it is still to come. */
  onReady(listener: () => void): void
  /** Drops a connection of the limiter's own on which nothing arrives any more, and connects anew. */
  renew(): void
  /** Closes the connection if it is the limiter's own. */
  close(): Promise<void>
}

/**
 * Connects as `client` does: a connection of the limiter's own, or the client itself.
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for what is no client of ioredis, iovalkey or node-redis,
 * and for one that may send a command twice
 */
export function connectLike(client: unknown, own: boolean): RedisConnection {
  if (isIoredis(client)) return fromIoredis(client, own)
  if (isNodeRedis(client)) return fromNodeRedis(client, own)
  throw new MillraceError(
    'ERR_MILLRACE_INVALID_OPTION',
    'client',
    client,
    'a client of ioredis, iovalkey or node-redis (the package redis)',
  )
}

/**
 * The same connection, whose replies wait for a replica.
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for a Cluster
 */
export function replicated(connection: RedisConnection, deadlineMs: number): RedisConnection {
  if (!connection.isCluster) return new ReplicatedConnection(connection, deadlineMs)
  void connection.close()
  const expected = "'primary' for a Cluster"
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'durability', 'replica', expected)
}
