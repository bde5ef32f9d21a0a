// The servers of Redis that have the counts: one, the primary of a Sentinel, or shards.
import { Rendezvous } from 'millrace/internal'
import type { Records } from '../idempotency/records.js'
import { RedisRecords } from '../idempotency/redis-records.js'
import { ShardedRecords } from '../idempotency/sharded-records.js'
import type { Settings } from '../options/table.js'
import { redisUrlsOf } from './addresses.js'
import { redisClient } from './redis-client.js'

/** The servers, and what ends their connections. */
export interface RedisServers {
  /** The option of limiters that names them: `client` or `shards`. */
  readonly options: object
  /** Keys of which each is on another server. */
  readonly probes: readonly string[]
  records(prefix: string, lifetimeMs: number): Records
  connected(): Promise<void>
  setPassword(password: string | undefined): void
  disconnect(): void
}

type RedisClient = ReturnType<typeof redisClient>

interface Shard {
  readonly name: string
  readonly client: RedisClient
}

/** Of a store that is one server, and the beginning of others. */
export const PROBE = 'readyz'

export function openRedis(
  urls: readonly string[],
  { countsBefore, countsPassword, changeWithin, deadline }: Settings,
): RedisServers {
  const before = countsBefore === undefined ? [] : redisUrlsOf(countsBefore, 'countsBefore')
  const clients = new Map<string, RedisClient>()
  const shardsOf = (urls: readonly string[]): Shard[] =>
    urls.map((url) => {
      const name = nameOf(url)
      const client = clients.get(name) ?? redisClient(url, countsPassword)
      clients.set(name, client)
      return { name, client }
    })
  const [shards, previousShards] = [shardsOf(urls), shardsOf(before)]
  const isSharded = shards.length > 1 || previousShards.length > 0
  return {
    options: isSharded
      ? {
          shards,
          changeWithin: `${changeWithin}ms`,
          ...(previousShards.length > 0 && { previousShards }),
        }
      : { client: shards[0]!.client },
    probes: probesOf(shards),
    records(prefix, lifetimeMs) {
      const byClient = new Map(
        [...clients.values()].map((client) => [
          client,
          new RedisRecords(client, prefix, lifetimeMs, deadline),
        ]),
      )
      const over = (shards: readonly Shard[]) =>
        new Rendezvous<Records>(shards.map(({ name, client }) => [name, byClient.get(client)!]))
      return new ShardedRecords(over(shards), previousShards.length > 0 ? over(previousShards) : undefined)
    },
    connected: async () => {
      await Promise.all([...clients.values()].map((client) => client.connected()))
    },
    setPassword(password) {
      for (const client of clients.values()) client.setPassword(password)
    },
    disconnect() {
      for (const client of clients.values()) client.disconnect()
    },
  }
}

const DEFAULT_PORT = '6379'

/** `host:port`, which decides what keys a shard has. */
function nameOf(url: string): string {
  const { hostname, port } = new URL(url)
  return `${hostname}:${port || DEFAULT_PORT}`
}

function probesOf(shards: readonly Shard[]): string[] {
  if (shards.length === 1) return [PROBE]
  const byKey = new Rendezvous(shards.map(({ name }) => [name, name]))
  return shards.map(({ name }) => {
    let i = 0
    while (byKey.find(`${PROBE} ${i}`) !== name) i++
    return `${PROBE} ${i}`
  })
}
