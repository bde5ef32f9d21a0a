/** Policies in a collection of MongoDB, for all processes that reach it. */
import type { Filter, WithoutId } from 'mongodb'
import type { ConfigStore } from './config-store.js'
import { DocumentStore, type Listed, type RawDocument } from './document-store.js'
import type { PolicyDocument } from './policy.js'
import { logChange } from './stores/mongodb/mongodb-log.js'
import {
  checkMongoOptions,
  type MongoConfigOptions,
  type MongoPlan,
} from './stores/mongodb/mongodb-options.js'
import { BY_BYTES, isDuplicate, MongoServer, type PolicyRecord } from './stores/mongodb/mongodb-server.js'
import { MongoWatch } from './stores/mongodb/mongodb-watch.js'
import { afterPrefix } from './utf8-order.js'

export type * from './store-types.js'
export type { MongoConfigOptions } from './stores/mongodb/mongodb-options.js'

/** A change stream tells a change as soon as the majority has it. */
const STREAM_DELAY_MS = 100

/**
 * Creates a store on MongoDB 4.4 or later, by the package `mongodb` 7. Each policy is a document whose `_id` is the key,
 * with the fields `format`, `version`, and those of the policy. It connects at the first request.
 *
 * A write is acknowledged when the majority of the replica set has it in its journal. A read sees every write that was
 * acknowledged before it. (Except in the seconds in which a primary that has been cut off does not know yet that there
 * is another one.)
 *
 * `watch` reads a change stream of a replica set or sharded cluster, which tells the changes of everybody. A server
 * without replica set has none: each write is then logged in the collection `policies.changes`, and `watch` reads that
 * log every `pollMs`. It does not tell what others write by hand there.
 *
 * A client keeps the process alive until it is closed. `close` closes the one that the store has made.
 *
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_INVALID_DURATION`
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { mongoConfig } from 'millrace/config/mongodb'
 *
 * const config = mongoConfig({ url: 'mongodb://127.0.0.1:27017/limits' })
 * await config.put('plan:pro:*', { limit: 1000, window: '1m' })
 * const limiter = createLimiter({ config, default: { limit: 100, window: '1m' } })
 * console.log((await limiter.checkAsync('plan:pro:alice')).limit) // 1000
 * await config.close()
 * ```
 */
export function mongoConfig(options: MongoConfigOptions): ConfigStore {
  return new MongoConfig(checkMongoOptions(options))
}

class MongoConfig extends DocumentStore {
  readonly kind = 'mongodb'
  readonly watchDelayMs: number
  readonly #server: MongoServer
  readonly #pollMs: number
  #watch: MongoWatch | undefined
  #watchEnds: Promise<unknown> = Promise.resolve()

  constructor(plan: MongoPlan) {
    super()
    this.#server = new MongoServer(plan)
    this.#pollMs = plan.pollMs
    this.watchDelayMs = Math.max(STREAM_DELAY_MS, 2 * plan.pollMs)
  }

  protected async read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    if (keys.length === 0) return []
    const found = await this.#find({ _id: { $in: [...keys] } }, keys.length)
    const byKey = new Map(found.map((record) => [record._id, record]))
    return keys.map((key) => {
      const record = byKey.get(key)
      return record && rawOf(record)
    })
  }

  protected async replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    const { isReplicated } = await this.#server.collections()
    if (!isReplicated) await logChange(this.#server, key, next?.version ?? null)
    const isReplaced =
      expected === undefined
        ? await this.#insert(key, next!)
        : await this.#overwrite({ _id: key, version: expected.token } as Filter<PolicyRecord>, next)
    if (isReplaced) this.#watch?.say({ keys: [key] })
    return isReplaced
  }

  async #insert(key: string, next: PolicyDocument): Promise<boolean> {
    try {
      await this.#server.ask(({ policies }, limits) => policies.insertOne({ _id: key, ...next }, limits))
      return true
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  #overwrite(filter: Filter<PolicyRecord>, next: PolicyDocument | undefined): Promise<boolean> {
    return this.#server.ask(async ({ policies }, limits) => {
      const options = { ...limits, collation: BY_BYTES }
      if (next === undefined) return (await policies.deleteOne(filter, options)).deletedCount === 1
      const replacement = next as unknown as WithoutId<PolicyRecord>
      return (await policies.replaceOne(filter, replacement, options)).matchedCount === 1
    })
  }

  protected async page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    const range = { ...rangeOf(prefix), ...(after !== undefined && { $gt: after }) }
    const found = await this.#find({ _id: range }, limit)
    return found.map((record) => ({ key: record._id, ...rawOf(record) }))
  }

  protected countDocuments(prefix: string): Promise<number> {
    return this.#server.ask(({ policies }, limits) =>
      policies.countDocuments({ _id: rangeOf(prefix) }, { ...limits, collation: BY_BYTES }),
    )
  }

  /** Documents in the order of the bytes of their keys. */
  #find(filter: Filter<PolicyRecord>, limit: number): Promise<PolicyRecord[]> {
    const options = { collation: BY_BYTES, sort: { _id: 1 }, limit, batchSize: limit + 1 } as const
    return this.#server.ask(({ policies }, limits) =>
      policies.find(filter, { ...limits, ...options }).toArray(),
    )
  }

  protected startWatch(): void {
    this.#watch = new MongoWatch(this.#server, this.#pollMs, (change) => this.tell(change))
  }

  protected stopWatch(): void {
    this.#watchEnds = Promise.all([this.#watchEnds, this.#watch?.end()])
    this.#watch = undefined
  }

  protected async end(): Promise<void> {
    await this.#watchEnds
    await this.#server.close()
  }
}

/** The keys with a prefix. A range of strings has strings only: keys of other types are not seen. */
function rangeOf(prefix: string): { $gte: string; $lt?: string } {
  const end = afterPrefix(prefix)
  return { $gte: prefix, ...(end !== undefined && { $lt: end }) }
}

/** The document, with the condition that it is still this one: its version, or that it has none. */
function rawOf({ _id: _, ...document }: PolicyRecord): RawDocument {
  const token = 'version' in document ? { $eq: document.version, $exists: true } : { $exists: false }
  return { document, token }
}
