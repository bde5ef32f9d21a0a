import { existsSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { MillraceError } from 'millrace'
import type { ConfigStore } from 'millrace/config/memory'
import { type StoreAddress, shownUrl } from 'millrace/internal'
import { FailedOperation, UsageError } from '../terminal.js'
import { storeAddress } from './store-url.js'

/** A store, and what ends it and its connections. */
interface Opened {
  readonly store: ConfigStore
  readonly end: () => void
}

/** How long a request to a server may take. An operator can wait longer than a limiter. */
const DEADLINE_MS = 5_000

/** Backends and their clients are loaded on use: the clients are optional. */
const require = createRequire(import.meta.url)

const OPENERS: {
  [Kind in StoreAddress['kind']]: (address: StoreAddress & { kind: Kind }) => Promise<Opened>
} = {
  async lmdb({ path }) {
    const { lmdbConfig }: typeof import('millrace/config/lmdb') = require('millrace/config/lmdb')
    return { store: lmdbConfig({ path }), end() {} }
  },
  async file({ path }) {
    const { fileConfig }: typeof import('millrace/config/file') = require('millrace/config/file')
    return { store: fileConfig({ path }), end() {} }
  },
  async redis({ url, prefix }) {
    const { redisConfig }: typeof import('millrace/config/redis') = require('millrace/config/redis')
    const { Redis } = await import('ioredis')
    const client = new Redis(url, {
      connectTimeout: DEADLINE_MS,
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null, // a command ends with an error rather than wait for a server
    })
    let lost: Error | undefined
    client.on('error', (error) => {
      lost = error
    })
    // `connectTimeout` ends when the server accepts the connection, and the greeting has no timeout.
    const timer = setTimeout(() => {
      lost = new Error(`expected an answer within ${DEADLINE_MS} ms, got none`)
      client.disconnect()
    }, DEADLINE_MS)
    try {
      await client.connect()
    } catch (error) {
      throw lost ?? error
    } finally {
      clearTimeout(timer)
    }
    return {
      store: redisConfig({ client, deadlineMs: DEADLINE_MS, ...(prefix !== undefined && { prefix }) }),
      end: () => client.disconnect(),
    }
  },
  async dynamodb({ kind, ...options }) {
    const { dynamoConfig }: typeof import('millrace/config/dynamodb') = require('millrace/config/dynamodb')
    return { store: dynamoConfig({ ...options, deadlineMs: DEADLINE_MS }), end() {} }
  },
  async mongodb({ kind, ...options }) {
    const { mongoConfig }: typeof import('millrace/config/mongodb') = require('millrace/config/mongodb')
    return { store: mongoConfig({ ...options, deadline: DEADLINE_MS }), end() {} }
  },
}

/**
 * Opens the store of a URL for `act`, and closes it. With `creates`, a store that does not exist is made.
 * @throws UsageError for a wrong URL, or a client that is not installed; FailedOperation if the store fails
 */
export function withStore<T>(
  url: string,
  { creates }: { creates: boolean },
  act: (store: ConfigStore) => Promise<T>,
): Promise<T> {
  return atStore(url, { creates }, async (address) => {
    if (creates && address.kind === 'file' && !existsSync(address.path))
      writeFileSync(address.path, '{}\n', { flag: 'wx' }) // JSON is YAML, too
    const { store, end } = await open(address)
    try {
      return await act(store)
    } finally {
      await store.close()
      end()
    }
  })
}

/** Calls `act` with the address of a store, which exists unless it `creates` one. Throws as {@link withStore} does. */
export async function atStore<T>(
  url: string,
  { creates }: { creates: boolean },
  act: (address: StoreAddress) => Promise<T>,
): Promise<T> {
  const address = storeAddress(url)
  if (!creates && 'path' in address && !exists(address))
    throw new UsageError(`--store: expected a store that exists, got ${JSON.stringify(url)}`)
  try {
    return await act(address)
  } catch (error) {
    if (error instanceof UsageError || error instanceof FailedOperation) throw error
    const name = missingPackage(error)
    if (name !== undefined) {
      const why = `the package ${name} is missing. Install it beside millrace-cli: npm install ${name}`
      throw new UsageError(`${shownUrl(url)}: ${why}`, { cause: error })
    }
    if (error instanceof MillraceError && error.code === 'ERR_MILLRACE_INVALID_OPTION')
      throw new UsageError(`--store: ${error.message}`, { cause: error }) // such as a prefix that Redis refuses
    const { syscall } = Object((error as Error).cause) as NodeJS.ErrnoException
    if (error instanceof MillraceError && 'path' in address && syscall !== undefined)
      throw new UsageError(`--store: ${error.message}`, { cause: error }) // a file that can't be read
    if (error instanceof MillraceError) throw new FailedOperation(error.message, { cause: error })
    throw new FailedOperation(`${shownUrl(url)}: ${(error as Error).message}`, { cause: error })
  }
}

/** A folder without a database is no store: LMDB would make one there. */
function exists({ kind, path }: StoreAddress & { path: string }): boolean {
  if (!existsSync(path)) return false
  return kind !== 'lmdb' || !statSync(path).isDirectory() || existsSync(join(path, 'data.mdb'))
}

function open(address: StoreAddress): Promise<Opened> {
  return (OPENERS[address.kind] as (address: StoreAddress) => Promise<Opened>)(address)
}

/** The package that was not found by `import` or `require`. */
export function missingPackage(error: unknown): string | undefined {
  if (error instanceof MillraceError && error.code === 'ERR_MILLRACE_MISSING_PEER') return error.option
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined
  return /^Cannot find (?:package|module) '([^'./][^']*)'/.exec(message)?.[1]
}
