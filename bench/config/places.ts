// Stores that two processes open.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { ConfigStore } from 'millrace'
import { dynamoConfig } from 'millrace/config/dynamodb'
import { fileConfig } from 'millrace/config/file'
import { lmdbConfig } from 'millrace/config/lmdb'
import { mongoConfig } from 'millrace/config/mongodb'
import { redisConfig } from 'millrace/config/redis'
import { clientOptions, startDynalite } from '../../test/config/dynalite.js'
import { StandIn } from '../../test/config/mongo-stand-in/stand-in.js'
import { HOST } from '../../test/redis/ports.js'
import { startRedis } from '../../test/redis/servers.js'

export type Kind = 'file' | 'lmdb' | 'redis' | 'mongodb, replica set' | 'mongodb, standalone' | 'dynamodb'

/** Where the documents are. It can be sent to another process. */
export interface Place {
  readonly kind: Kind
  readonly path?: string
  readonly port?: number
  readonly url?: string
}

/** The stores that are opened here and their clients stay open until the process ends. */
export function openStore({ kind, path, port, url }: Place): ConfigStore {
  switch (kind) {
    case 'file':
      return fileConfig({ path: path! })
    case 'lmdb':
      return lmdbConfig({ path: path! })
    case 'redis':
      return redisConfig({ client: new Redis(port!, HOST) })
    case 'dynamodb':
      return dynamoConfig({ table: 'policies', deadlineMs: 10_000, ...clientOptions(port!) })
    default:
      return mongoConfig({ url: url! })
  }
}

/** Starts what a store needs, and ends it when `use` has ended. */
export async function withPlace<T>(kind: Kind, use: (place: Place) => Promise<T>): Promise<T> {
  if (kind === 'file' || kind === 'lmdb') {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-change-'))
    try {
      const place = { kind, path: join(folder, kind === 'file' ? 'policies.json' : 'policies') }
      if (kind === 'file') writeFileSync(place.path, '{}')
      return await use(place)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  if (kind === 'redis') {
    const server = await startRedis()
    try {
      return await use({ kind, port: server.port })
    } finally {
      await server.stop()
    }
  }
  if (kind === 'dynamodb') {
    const server = await startDynalite()
    const store = dynamoConfig({ table: 'policies', ...clientOptions(server.port) })
    await store.createTable()
    await store.close()
    try {
      return await use({ kind, port: server.port })
    } finally {
      await server.stop()
    }
  }
  const standIn = await StandIn.start(kind === 'mongodb, replica set' ? 'replica set' : 'standalone')
  try {
    return await use({ kind, url: standIn.url })
  } finally {
    await standIn.stop()
  }
}
