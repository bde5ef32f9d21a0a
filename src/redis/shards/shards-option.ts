import { invalid } from '../../core/errors.js'
import { isIoredis } from '../clients/ioredis.js'
import type { IoredisClient } from '../clients/ioredis-client.js'
import { isNodeRedis, type NodeRedisClient } from '../clients/node-redis.js'
import { isCluster, type NodeRedisCluster } from '../clients/node-redis-cluster.js'
import { isSentinel, type NodeRedisSentinel } from '../clients/node-redis-sentinel.js'

/** A client of one server. */
export type ShardClient = IoredisClient | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel

/**
 * One of several independent servers. Its name decides which keys it has: it stays the same when the server moves to
 * another address. Without a name it is `host:port` of the client.
 */
export type RedisShard = ShardClient | { readonly name: string; readonly client: ShardClient }

/** A shard, checked. */
export interface NamedShard {
  readonly name: string
  readonly client: unknown
}

/** The shards of a limiter, checked. */
export interface ShardsPlan {
  readonly shards: readonly NamedShard[]
  readonly previousShards: readonly NamedShard[]
  /** All processes have a change of the list within this time. */
  readonly changeWithinMs: number
}

const MOST_SHARDS = 256
const LONGEST_NAME = 256

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` that names the shard */
export function checkShards(shards: unknown, option: string): readonly NamedShard[] {
  if (!Array.isArray(shards) || shards.length < 1 || shards.length > MOST_SHARDS)
    throw invalid(option, shards, `an array of 1 to ${MOST_SHARDS} clients, or of { name, client }`)
  const checked = Array.from(shards, (shard: unknown, i) => checkShard(shard, `${option}[${i}]`))
  for (const [i, { name }] of checked.entries()) {
    const other = checked.findIndex((shard) => shard.name === name)
    if (other < i)
      throw invalid(`${option}[${i}].name`, name, `another name than that of ${option}[${other}]`)
  }
  return checked
}

function checkShard(shard: unknown, option: string): NamedShard {
  if (isClient(shard)) return { name: addressOf(shard, option), client: shard }
  if (typeof shard !== 'object' || shard === null)
    throw invalid(option, shard, 'a client of ioredis, iovalkey or node-redis, or { name, client }')
  const { name, client, ...rest } = shard as Partial<NamedShard>
  if (!isClient(client))
    throw invalid(
      `${option}.client`,
      client,
      'a client of ioredis, iovalkey or node-redis (the package redis)',
    )
  const [other] = Object.keys(rest)
  if (other !== undefined) throw invalid(`${option}.${other}`, other, 'name and client only')
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME || !name.isWellFormed())
    throw invalid(`${option}.name`, name, `1 to ${LONGEST_NAME} characters`)
  return { name, client }
}

const isClient = (client: unknown): client is ShardClient =>
  isIoredis(client) || isCluster(client) || isSentinel(client) || isNodeRedis(client)

interface Address {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly sentinels?: unknown
}

/** `host:port`, as ioredis and node-redis have it. */
function addressOf(client: ShardClient, option: string): string {
  const isOfIoredis = isIoredis(client)
  const options = (isCluster(client) || isSentinel(client) ? undefined : client.options) as
    | (Address & { readonly socket?: Address })
    | undefined
  const { host, port, path, sentinels }: Address = (isOfIoredis ? options : options?.socket) ?? {}
  if (options === undefined || (isOfIoredis && client.isCluster) || sentinels || path)
    throw invalid(option, client, '{ name, client }: this client has no host and port of its own')
  return `${host ?? 'localhost'}:${port ?? 6379}`
}
