// What tests of limiters on a Cluster share.
import { Cluster as Client } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { slotOf } from '#millrace/redis/clients/slots.js'
import { KeyNames } from '#millrace/remote/key-names.js'
import type { Cluster } from './cluster.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { sendOnce } from './wire.js'

export const PREFIX = 'test'

/** A client that is not connected. */
export function clientOf(cluster: Cluster, options: object = {}, Library = Client): Client {
  const nodes = cluster.nodes.filter(({ isRunning }) => isRunning).map(({ port }) => ({ host: HOST, port }))
  return new Library(nodes, { lazyConnect: true, ...options })
}

/** A limiter with a client that is never connected itself. */
export function limiterOn(cluster: Cluster, options: Partial<RedisLimiterOptions> = {}): RedisLimiter {
  const all = { client: clientOf(cluster), prefix: PREFIX, limit: 100, window: '1h', ...options }
  return createRedisLimiter(all as RedisLimiterOptions)
}

/** The names of the values of a key. */
export const namesOf = (key: string, rules: readonly string[] = ['default']): string[] =>
  new KeyNames(PREFIX, rules).of(key)

/** Makes keys whose slot is as wanted. */
export async function keysWhere(
  isWanted: (slot: number) => boolean | Promise<boolean>,
  count: number,
  start = 'key',
): Promise<string[]> {
  const keys: string[] = []
  for (let i = 0; keys.length < count; i++)
    if (await isWanted(slotOf(namesOf(`${start} ${i}`)[0]!))) keys.push(`${start} ${i}`)
  return keys
}

/** Makes keys that each primary owns, so many of each. */
export async function keysOfEach(cluster: Cluster, count: number): Promise<Map<Server, string[]>> {
  const owned = new Map<Server, string[]>()
  for (const primary of new Set(await Promise.all([0, 8_000, 16_000].map((slot) => cluster.ownerOf(slot)))))
    owned.set(primary, await keysWhere(async (slot) => (await cluster.ownerOf(slot)) === primary, count))
  return owned
}

/** A counter of a node: `calls` of EVALSHA, or what `INFO` names. */
export async function figureOf({ port }: Server, name: string): Promise<number> {
  const info: string = await sendOnce(port, 'INFO', 'everything')
  return Number(new RegExp(`^${name}[:=](\\d+)`, 'm').exec(info)?.[1] ?? 0)
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
