// The collections of a store on MongoDB, with what they guarantee, and requests to them within a deadline.
import type { Collection, CollectionOptions, Document, MongoClient } from 'mongodb'
import type { MongoPlan } from './mongodb-options.js'

/** A policy as MongoDB has it: the key as `_id`, and the fields of its document. */
export interface PolicyRecord {
  readonly _id: string
  readonly [field: string]: unknown
}

export interface Collections {
  /** Whether there is a replica set, or a cluster of them: it has change streams. */
  readonly isReplicated: boolean
  readonly policies: Collection<PolicyRecord>
  /** What was changed last, on a server without replica set. See `mongodb-log.ts`. */
  readonly changes: Collection<PolicyRecord>
}

/** Options of each request, by which the server and the driver stop at the deadline. */
export interface Limits {
  readonly maxTimeMS: number
  readonly signal: AbortSignal
}

/** Strings are compared by their UTF-8 bytes, not by the collation of the collection. */
export const BY_BYTES = { locale: 'simple' } as const

export class MongoServer {
  readonly deadlineMs: number
  readonly #client: MongoClient
  readonly #isOwnClient: boolean
  readonly #database: string | undefined
  readonly #collection: string
  #collections: Promise<Collections> | undefined

  constructor({ client, isOwnClient, database, collection, deadlineMs }: MongoPlan) {
    this.#client = client
    this.#isOwnClient = isOwnClient
    this.#database = database
    this.#collection = collection
    this.deadlineMs = deadlineMs
  }

  /** Sends a request, and rejects if it takes longer than the deadline. */
  async ask<T>(act: (collections: Collections, limits: Limits) => Promise<T>): Promise<T> {
    const collections = await this.collections()
    const late = new AbortController()
    try {
      const answer = act(collections, { maxTimeMS: this.deadlineMs, signal: late.signal })
      return await within(this.deadlineMs, answer)
    } catch (error) {
      late.abort() // the driver would wait for a server, and write long after
      if (!isDuplicate(error)) this.#collections = undefined // the server may come back as another one
      throw error
    }
  }

  /** Asks the server what it is, the first time and after each error. */
  collections(): Promise<Collections> {
    if (this.#collections === undefined) {
      const asked = within(this.deadlineMs, this.#open())
      asked.catch(() => {
        if (this.#collections === asked) this.#collections = undefined
      })
      this.#collections = asked
    }
    return this.#collections
  }

  async #open(): Promise<Collections> {
    const hello = await this.#hello()
    const isReplicated = hello.setName !== undefined || hello.msg === 'isdbgrid'
    const options: CollectionOptions = {
      // A server without replica set has no majority to read from. Its own data is all that there is.
      readConcern: { level: isReplicated ? 'majority' : 'local' },
      readPreference: 'primary',
      writeConcern: { w: 'majority', journal: true, wtimeoutMS: this.deadlineMs },
      // What numbers and documents are read as, also against the client's own options.
      promoteValues: true,
      promoteLongs: true,
      useBigInt64: false,
      raw: false,
      ignoreUndefined: false,
    }
    const database = this.#client.db(this.#database)
    return {
      isReplicated,
      policies: database.collection<PolicyRecord>(this.#collection, options),
      changes: database.collection<PolicyRecord>(`${this.#collection}.changes`, options),
    }
  }

  async #hello(): Promise<Document> {
    const ask = () => this.#client.db('admin').command({ hello: 1 })
    try {
      return await ask()
    } catch (error) {
      if (!hasFailedToConnect(this.#client, error)) throw error
      await this.#client.connect()
      return ask()
    }
  }

  async close(): Promise<void> {
    if (this.#isOwnClient) await this.#client.close()
  }
}

/**
 * Rejects if `answer` takes longer. The driver has no deadline of its own that counts all: choosing a server, waiting for
 * a connection, and repetitions. `onTimer` gets the timer, to begin again at a sign of life.
 */
export async function within<T>(
  ms: number,
  answer: Promise<T>,
  onTimer: (timer: NodeJS.Timeout) => void = () => {},
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
    onTimer(timer)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Whether the first connection of a client has failed: it then refuses requests until `connect` is called. A client that
 * its owner has closed has no topology any more. It stays closed.
 */
const hasFailedToConnect = (client: MongoClient & { readonly topology?: unknown }, error: unknown): boolean =>
  (Object(error) as Error).name === 'MongoTopologyClosedError' && client.topology !== undefined

/** Whether a write was refused because there is a document with this `_id`. */
export const isDuplicate = (error: unknown): boolean => (Object(error) as { code?: unknown }).code === 11_000
