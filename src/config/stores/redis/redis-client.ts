import { invalid } from '../../../core/errors.js'
// The client that the store uses.

import { CONNECT_TIMEOUT_MS, type RedisConfigClient, type Subscriber } from './client-parts.js'
import { fromNodeRedis } from './node-redis-client.js'

interface Single {
  duplicate(options: object): Subscriber
}

interface Options {
  readonly keyPrefix?: string
  readonly scaleReads?: unknown
  readonly redisOptions?: Options
  readonly db?: number
}

const DISCONNECT_TIMEOUT_MS = 100

/** The watch connects again itself. */
const SUBSCRIBER = {
  lazyConnect: true,
  keyPrefix: '',
  retryStrategy: () => null,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  enableReadyCheck: false,
  autoResubscribe: false,
} as const

/** The client, or what makes one of node-redis like it. @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkedClient(client: unknown): RedisConfigClient {
  const like = fromNodeRedis(client) ?? (client as RedisConfigClient)
  const { status, options, callBuffer, duplicate, connect } = Object(like) as Partial<RedisConfigClient>
  const isClient =
    typeof status === 'string' &&
    [callBuffer, duplicate, connect].every((method) => typeof method === 'function')
  if (!isClient)
    throw invalid('client', client, 'a client of ioredis, iovalkey or node-redis (the package redis)')
  const { keyPrefix, scaleReads = 'master', redisOptions } = options as Options
  if (keyPrefix || redisOptions?.keyPrefix)
    throw invalid('client.options.keyPrefix', keyPrefix || redisOptions?.keyPrefix, 'none: use prefix')
  // A replica may not have what `put` has just stored.
  if (scaleReads !== 'master') throw invalid('client.options.scaleReads', scaleReads, "'master'")
  return like
}

/** The number of the database that the client has selected. */
export const databaseOf = (client: RedisConfigClient): number => (client.options as Options).db ?? 0

/** A connection for a subscription, which is not open yet. In a Cluster each node has all messages. */
export function subscriberLike(client: RedisConfigClient): Subscriber {
  if (!client.isCluster) return (client as unknown as Single).duplicate(SUBSCRIBER)
  const nodes = (client as unknown as { nodes(role: 'all'): Single[] }).nodes('all')
  const node = nodes[Math.floor(Math.random() * nodes.length)]
  if (node === undefined) throw new Error('no node of the Cluster is known')
  return node.duplicate({ ...SUBSCRIBER, readOnly: false, enableOfflineQueue: true })
}
