import { invalid } from '../core/errors.js'
/** Policies on Redis or Valkey, for all processes and machines that reach it. */

import { randomInt } from 'node:crypto'
import { refuseUnknown } from '../core/option-names.js'
import type { ConfigStore } from './config-store.js'
import { type BoundedCall, checkMs } from './deadline.js'
import { DocumentStore, type Listed, type RawDocument } from './document-store.js'
import { documentIn, type PolicyDocument } from './policy.js'
import type { RedisConfigClient } from './stores/redis/client-parts.js'
import type { NodeRedisConfigClient } from './stores/redis/node-redis-client.js'
import { checkedClient, databaseOf } from './stores/redis/redis-client.js'
import { RedisCommands } from './stores/redis/redis-commands.js'
import { argumentOf, boundsOf, LARGEST_START, REPLACE, RedisNames } from './stores/redis/redis-script.js'
import { RedisWatch } from './stores/redis/redis-watch.js'

export type * from './store-types.js'
export type { RedisConfigClient } from './stores/redis/client-parts.js'
export type { NodeRedisConfigClient } from './stores/redis/node-redis-client.js'

/** Options of {@link redisConfig}. */
export interface RedisConfigOptions {
  /**
   * A client of `ioredis` or `iovalkey`: of one server, by a Sentinel, or of a Cluster. Or one of `node-redis` (the
   * package `redis`), of one server, which its owner connects. The store uses it as it is and leaves it open; while there
   * are listeners, it has one more connection like it, for the messages. It must have no `keyPrefix`, and a Cluster's no
   * `scaleReads`. Its option `socketTimeout` (node-redis: `socket.socketTimeout`) decides when it gives up a connection
   * on which nothing arrives any more: until then, calls reject by their deadline.
   */
  client: RedisConfigClient | NodeRedisConfigClient
  /**
   * What the names of the store's values begin with: 1 to 64 characters without braces. It is their hash tag: a Cluster
   * keeps all policies of a store on one node. Several stores with prefixes of their own spread them:
   * `shardedConfig` of `millrace/config/sharded`.
   * @default 'millrace:config'
   */
  prefix?: string
  /**
   * The longest that one round trip to Redis may take, with the wait for a connection, in milliseconds: 1 to 3,600,000.
   * A `put` or a `delete` takes two round trips, more if others change the key at the same time.
   * @default 1000
   */
  deadlineMs?: number
  /**
   * How often a store with listeners asks whether it has missed a message, in milliseconds: 10 to 60,000.
   * @default 1000
   */
  pollMs?: number
}

const KNOWN = ['client', 'prefix', 'deadlineMs', 'pollMs']
const DEADLINE_MS = [1, 3_600_000] as const
const POLL_MS = [10, 60_000] as const

/**
 * Creates a store on Redis or Valkey. Each policy is a JSON text of its own, `{millrace:config}:policy:KEY`. A change is
 * acknowledged when the primary has it: it lasts as the server's own persistence and replication do (`appendonly`,
 * `min-replicas-to-write`). A server that may evict values that don't expire, by a `maxmemory-policy` `allkeys-*`, is
 * refused at the first `put`. While its memory is full, a `put` rejects and a `delete` works. The user of the client
 * needs the commands MGET, GET, EVAL, ZRANGEBYLEX, ZLEXCOUNT, SUBSCRIBE and INFO, and those of the script: SET, DEL,
 * INCR, ZADD, ZREM, ZSCORE and PUBLISH.
 *
 * A change reaches the listeners of all processes by a message, and within two seconds if that is lost. A `put` that
 * rejects with `ERR_MILLRACE_CONFIG_STORE` may have been stored all the same. It never overwrites what somebody else has
 * stored since.
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import { redisConfig } from 'millrace/config/redis'
 *
 * const client = new Redis(process.env.REDIS_URL)
 * const store = redisConfig({ client })
 * await store.put('plan:pro:*', { limit: 1000, window: '1m' })
 * ```
 */
export function redisConfig(options: RedisConfigOptions): ConfigStore {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ client, ... }')
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  const { client, prefix = 'millrace:config', deadlineMs = 1_000, pollMs = 1_000 } = options
  const used = checkedClient(client)
  if (typeof prefix !== 'string' || !/^[^{}\0]{1,64}$/.test(prefix) || !prefix.isWellFormed())
    throw invalid('prefix', prefix, '1 to 64 characters without braces and NUL')
  checkMs('deadlineMs', deadlineMs, DEADLINE_MS)
  checkMs('pollMs', pollMs, POLL_MS)
  return new RedisConfig(used, prefix, deadlineMs, pollMs)
}

class RedisConfig extends DocumentStore {
  readonly kind = 'redis'
  readonly watchDelayMs = 100
  readonly #commands: RedisCommands
  readonly #names: RedisNames
  readonly #watch: RedisWatch
  #keepsAll = false

  constructor(client: RedisConfigClient, prefix: string, deadlineMs: number, pollMs: number) {
    super()
    this.#commands = new RedisCommands(client, deadlineMs)
    this.#names = new RedisNames(prefix, databaseOf(client))
    this.#watch = new RedisWatch(this.#commands, this.#names, pollMs, (change) => this.tell(change))
  }

  protected read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    return this.#commands.within((call) => this.#read(call, keys))
  }

  async #read(call: BoundedCall, keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    if (keys.length === 0) return []
    const names = keys.map((key) => this.#names.policyOf(key))
    const texts = (await this.#commands.send(call, 'MGET', ...names)) as (Buffer | null)[]
    return texts.map((text) =>
      text === null ? undefined : { document: documentIn(String(text)), token: text },
    )
  }

  protected async replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    const before = expected?.token as Buffer | undefined
    const after = next === undefined ? undefined : Buffer.from(JSON.stringify(next))
    const isDone = await this.#commands.within((call) => this.#replace(call, key, before, after))
    if (isDone) this.tell({ keys: [key] })
    return isDone
  }

  /**
   * If the connection is lost the script may have run. It goes out again, from here or from the client: then it finds
   * the expected document and replaces it, or the next one, which it has stored itself.
   */
  async #replace(
    call: BoundedCall,
    key: string,
    before: Buffer | undefined,
    after: Buffer | undefined,
  ): Promise<boolean> {
    const { keys, revision, channel } = this.#names
    const names = [this.#names.policyOf(key), keys, revision]
    const values = [argumentOf(before), argumentOf(after), key, channel, randomInt(LARGEST_START)]
    if (after !== undefined) await this.#checkEviction(call)
    const { losses } = this.#commands
    const reply = await this.#commands.send(call, 'EVAL', REPLACE, names.length, ...names, ...values)
    const [isDone, current] = reply as [number | Buffer, Buffer | null]
    if (Number(isDone) === 1) return true
    return this.#commands.losses > losses && isSame(current ?? undefined, after)
  }

  /** Before the first change. @throws Error if the server may forget policies when its memory is full */
  async #checkEviction(call: BoundedCall): Promise<void> {
    if (this.#keepsAll) return
    const info = String(await this.#commands.send(call, 'INFO', 'memory'))
    const [, policy] = /^maxmemory_policy:(allkeys-\S+)/m.exec(info) ?? []
    if (policy !== undefined)
      throw new Error(`maxmemory-policy ${policy} may forget policies: take noeviction`)
    this.#keepsAll = true
  }

  protected page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    return this.#commands.within(async (call) => {
      const found: Listed[] = []
      let last = after
      while (found.length < limit) {
        const wanted = limit - found.length
        const bounds = boundsOf(prefix, last)
        const command = ['ZRANGEBYLEX', this.#names.keys, ...bounds, 'LIMIT', 0, wanted] as const
        const keys = ((await this.#commands.send(call, ...command)) as Buffer[]).map(String)
        const documents = await this.#read(call, keys)
        // A key without a document has just been deleted.
        for (const [i, raw] of documents.entries()) if (raw) found.push({ key: keys[i]!, ...raw })
        if (keys.length < wanted) break
        last = keys.at(-1)
      }
      return found
    })
  }

  protected countDocuments(prefix: string): Promise<number> {
    const bounds = boundsOf(prefix, undefined)
    return this.#commands.within(async (call) =>
      Number(await this.#commands.send(call, 'ZLEXCOUNT', this.#names.keys, ...bounds)),
    )
  }

  protected startWatch(): void {
    this.#watch.start()
  }

  protected stopWatch(): void {
    this.#watch.stop()
  }

  protected async end(): Promise<void> {}
}

const isSame = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b)
