// The client libraries in the oldest and the newest version of each range of `peerDependencies`.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { RedisLimiterOptions } from 'millrace/redis'
import { root } from '../package/root.js'
import { HOST } from './ports.js'

type Client = RedisLimiterOptions['client']
type Ioredis = typeof import('ioredis') & typeof import('ioredis').Redis
type NodeRedis = typeof import('redis')

export interface Clients {
  readonly library: 'ioredis' | 'redis'
  readonly version: string
  /** Makes clients that are not connected. */
  single(port: number, password?: string): Client
  cluster(ports: readonly number[]): Client
  sentinel(port: number, name: string): Client
}

const load = createRequire(join(root, 'test/redis/versions/package.json'))

function versionOf(module: string): string {
  const folder = load.resolve.paths(module)!.map((path) => join(path, module, 'package.json'))
  const file = folder.find((path) => readable(path))
  return JSON.parse(readFileSync(file!, 'utf8')).version
}

function readable(path: string): boolean {
  try {
    return readFileSync(path).length > 0
  } catch {
    return false
  }
}

function ofIoredis(module: string): Clients {
  const loaded = load(module) as Ioredis
  const Redis = loaded.Redis ?? loaded // 5.0 has no such name
  const { Cluster } = loaded
  return {
    library: 'ioredis',
    version: versionOf(module),
    single: (port, password) =>
      new Redis(port, HOST, { lazyConnect: true, ...(password === undefined ? {} : { password }) }),
    cluster: (ports) =>
      new Cluster(
        ports.map((port) => ({ host: HOST, port })),
        { lazyConnect: true },
      ),
    sentinel: (port, name) => new Redis({ sentinels: [{ host: HOST, port }], name, lazyConnect: true }),
  }
}

function ofNodeRedis(module: string): Clients {
  const { createClient, createCluster, createSentinel } = load(module) as NodeRedis
  const url = (port: number) => `redis://${HOST}:${port}`
  return {
    library: 'redis',
    version: versionOf(module),
    single: (port, password) =>
      createClient({ url: url(port), ...(password === undefined ? {} : { password }) }) as Client,
    cluster: (ports) => createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })) }),
    sentinel: (port, name) => createSentinel({ name, sentinelRootNodes: [{ host: HOST, port }] }),
  }
}

export const VERSIONS: readonly Clients[] = [
  ofIoredis('ioredis-5-oldest'),
  ofIoredis('ioredis-5-newest'),
  ofIoredis('ioredis'),
  ofNodeRedis('redis-5-oldest'),
  ofNodeRedis('redis-5-newest'),
  ofNodeRedis('redis-6-oldest'),
  ofNodeRedis('redis'),
]
