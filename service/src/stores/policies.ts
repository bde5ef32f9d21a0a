// Opens the store of policies.
import { createRequire } from 'node:module'
import type { ConfigStore } from 'millrace/config/memory'
import { readStoreAddress, type StoreAddress, WrongAddress } from 'millrace/internal'
import { OptionError } from '../options/option.js'
import { redisClient } from './redis-client.js'

/** A store, and what ends its connections. */
export interface Policies {
  readonly store: ConfigStore
  readonly kind: StoreAddress['kind']
  setPassword(password: string | undefined): void
  close(): Promise<void>
}

/** Stores and their clients are loaded on use: most of the clients are optional. */
const require = createRequire(import.meta.url)
const DEADLINE_MS = 1_000

/** Stores that are files of one machine. */
export const isOfOneMachine = (kind: StoreAddress['kind']): boolean => kind === 'file' || kind === 'lmdb'

/** @throws OptionError for a URL that is none */
export function policiesAddress(url: string): StoreAddress {
  try {
    return readStoreAddress(url)
  } catch (error) {
    if (!(error instanceof WrongAddress)) throw error
    throw new OptionError(`policies: ${error.message}`)
  }
}

export function openPolicies(url: string, password: string | undefined): Policies {
  const address = policiesAddress(url)
  const opened = open(address, password)
  return {
    kind: address.kind,
    store: opened.store,
    setPassword: opened.setPassword ?? (() => {}),
    async close() {
      await opened.store.close()
      opened.end?.()
    },
  }
}

interface Opened {
  readonly store: ConfigStore
  readonly end?: () => void
  readonly setPassword?: (password: string | undefined) => void
}

function open(address: StoreAddress, password: string | undefined): Opened {
  switch (address.kind) {
    case 'lmdb': {
      const { lmdbConfig }: typeof import('millrace/config/lmdb') = require('millrace/config/lmdb')
      return { store: lmdbConfig({ path: address.path }) }
    }
    case 'file': {
      const { fileConfig }: typeof import('millrace/config/file') = require('millrace/config/file')
      return { store: fileConfig({ path: address.path }) }
    }
    case 'redis': {
      const { redisConfig }: typeof import('millrace/config/redis') = require('millrace/config/redis')
      const { url, prefix } = address
      const client = redisClient(url, password)
      const own = prefix === undefined ? {} : { prefix }
      return {
        store: redisConfig({ client, deadlineMs: DEADLINE_MS, ...own }),
        end: () => client.disconnect(),
        setPassword: (password) => client.setPassword(password),
      }
    }
    case 'dynamodb': {
      const { dynamoConfig }: typeof import('millrace/config/dynamodb') = require('millrace/config/dynamodb')
      const { kind, ...options } = address
      return { store: dynamoConfig({ ...options, deadlineMs: DEADLINE_MS }) }
    }
    case 'mongodb': {
      const { mongoConfig }: typeof import('millrace/config/mongodb') = require('millrace/config/mongodb')
      const { kind, ...options } = address
      const url = password === undefined ? options.url : withPassword(options.url, password)
      return { store: mongoConfig({ ...options, url, deadline: DEADLINE_MS }) }
    }
  }
}

/** A URL of several hosts is none of the WHATWG. */
const withPassword = (url: string, password: string): string =>
  url.replace(/^([^:]+:\/\/[^/@:]+)(?::[^/@]*)?@/, `$1:${encodeURIComponent(password)}@`)
