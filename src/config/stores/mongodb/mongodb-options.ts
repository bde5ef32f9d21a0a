import { MongoClient } from 'mongodb'
import { type Duration, parseDuration } from '../../../core/duration.js'
import { invalid } from '../../../core/errors.js'
import { refuseUnknown } from '../../../core/option-names.js'

/** The options of {@link mongoConfig}. */
export interface MongoConfigOptions {
  /** A client of the package `mongodb`, version 7. The store never closes it. Its concerns don't matter here. */
  client?: MongoClient
  /** Instead of `client`: a connection string. The store makes a client of its own, and `close` closes it. */
  url?: string
  /** @default the database that the connection string names; `test` if it names none, as everywhere in MongoDB */
  database?: string
  /**
   * The collection of the policies. On a server without replica set, the collection of this name with `.changes`
   * behind it has what was changed last.
   * @default 'policies'
   */
  collection?: string
  /**
   * Without replica set: how often `watch` asks whether something has changed, in milliseconds, 10 to 60,000. It tells a
   * change within twice this time.
   * @default 50
   */
  pollMs?: number
  /**
   * How long a request to the server may take: 1 ms to a minute. `put` and `delete` make two requests; three on a server
   * without replica set. A write that took longer may have been made all the same.
   * @default '1s'
   */
  deadline?: Duration
}

/** The options, checked. */
export interface MongoPlan {
  readonly client: MongoClient
  /** Whether the store has made the client. */
  readonly isOwnClient: boolean
  readonly database: string | undefined
  readonly collection: string
  readonly pollMs: number
  readonly deadlineMs: number
}

const KNOWN = ['client', 'url', 'database', 'collection', 'pollMs', 'deadline']
const POLL_MS = 50
const LONGEST_MS = 60_000
/** MongoDB takes 255 bytes for the names of a database and a collection together. */
const LONGEST_COLLECTION = 120

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_DURATION` */
export function checkMongoOptions(options: MongoConfigOptions): MongoPlan {
  if (typeof options !== 'object' || options === null)
    throw invalid('options', options, 'an object with client or url')
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  const { client, url, database, collection = 'policies', pollMs = POLL_MS, deadline = '1s' } = options
  if (
    database !== undefined &&
    !(typeof database === 'string' && /^[^/\\. "$*<>:|?\0]{1,63}$/.test(database))
  )
    throw invalid('database', database, 'a name of 1 to 63 characters that MongoDB takes for a database')
  checkCollection(collection)
  if (!Number.isFinite(pollMs) || pollMs < 10 || pollMs > LONGEST_MS)
    throw invalid('pollMs', pollMs, `a number of milliseconds from 10 to ${LONGEST_MS}`)
  const deadlineMs = Math.ceil(parseDuration(deadline, 'deadline'))
  if (deadlineMs > LONGEST_MS) throw invalid('deadline', deadline, 'at most a minute')
  const own = url === undefined ? undefined : clientOf(url, deadlineMs)
  if (own !== undefined && client !== undefined) throw invalid('client', client, 'no client beside url')
  if (own === undefined) checkClient(client)
  return {
    client: own ?? (client as MongoClient),
    isOwnClient: own !== undefined,
    database,
    collection,
    pollMs,
    deadlineMs,
  }
}

function checkClient(client: unknown): void {
  const { db, close } = Object(client) as { db?: unknown; close?: unknown }
  if (typeof db !== 'function' || typeof close !== 'function')
    throw invalid('client', client, 'a MongoClient of the package mongodb, or url in its place')
}

function checkCollection(collection: unknown): void {
  if (
    typeof collection !== 'string' ||
    !/^(?!system\.)[^$\0]+$/.test(collection) ||
    /^\.|\.$|\.\./.test(collection) ||
    Buffer.byteLength(collection) > LONGEST_COLLECTION
  )
    throw invalid(
      'collection',
      collection,
      `a name of 1 to ${LONGEST_COLLECTION} bytes that MongoDB takes for a collection`,
    )
}

/** Makes a client, which connects at its first request. */
function clientOf(url: unknown, deadlineMs: number): MongoClient {
  if (typeof url !== 'string') throw invalid('url', url, 'a connection string')
  try {
    return new MongoClient(url, {
      appName: 'millrace',
      serverSelectionTimeoutMS: deadlineMs,
      connectTimeoutMS: Math.max(deadlineMs, 1_000),
      waitQueueTimeoutMS: deadlineMs,
    })
  } catch (error) {
    throw invalid('url', withoutPassword(url), `a connection string (${(error as Error).message})`)
  }
}

const withoutPassword = (url: string): string => url.replace(/\/\/[^/]*@/, '//***@')
