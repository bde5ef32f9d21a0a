import { MillraceError } from '../../core/errors.js'
import type { RedisConnection } from './connection.js'
import { fromIoredis, isIoredis } from './ioredis.js'
import { fromNodeRedis, isNodeRedis } from './node-redis.js'
import { fromCluster, isCluster } from './node-redis-cluster.js'
import { fromSentinel, isSentinel } from './node-redis-sentinel.js'
import { ReplicatedConnection } from './replicated-connection.js'

/**
 * Connects as `client` does: a connection of the limiter's own, or the client itself.
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for what is no client of ioredis, iovalkey or node-redis,
 * and for one that may send a command twice
 */
export function connectLike(client: unknown, own: boolean): RedisConnection {
  if (isIoredis(client)) return fromIoredis(client, own)
  if (isCluster(client)) return fromCluster(client, own)
  if (isSentinel(client)) return fromSentinel(client, own)
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
