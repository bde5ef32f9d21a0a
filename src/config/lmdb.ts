import { invalid } from '../core/errors.js'
/** Policies in an LMDB file: on the disk of one machine, for all of its processes, and read at the speed of memory. */
import { refuseUnknown } from '../core/option-names.js'
import type { ConfigChange, SyncConfigStore } from './config-store.js'
import {
  type Listed,
  nextVersion,
  type PolicyEntry,
  type RawDocument,
  SyncDocumentStore,
  storeError,
  versionIn,
} from './document-store.js'
import { KnownPolicies } from './known-policies.js'
import { documentIn, documentOf, type PolicyDocument } from './policy.js'
import { ChangeLog } from './stores/lmdb/lmdb-changes.js'
import { acquire, checkFile, type LmdbDatabase, release } from './stores/lmdb/lmdb-database.js'
import { afterPrefix, byUtf8 } from './utf8-order.js'

export type * from './store-types.js'

export interface LmdbConfigOptions {
  /**
   * A folder, which is made if its parent exists, or a file if the path has an extension (`limits.mdb`). It must be on
   * a disk of this machine, not on a network file system.
   */
  path: string
  /**
   * The bytes of address space to reserve at first, 65,536 or more. It grows by itself with the data.
   * @default 131_072
   */
  mapSize?: number
  /**
   * How often `watch` looks for what other processes have changed: 1 to 60,000 milliseconds. A look takes some
   * microseconds.
   * @default 50
   */
  pollMs?: number
}

const OPTIONS = ['path', 'mapSize', 'pollMs']
const LEAST_MAP = 65_536
const LONGEST_POLL_MS = 60_000
const DEFAULT_POLL_MS = 50
/**
 * The entries of a transaction of `putMany`. All are written on this thread, which takes some microseconds each, while
 * other writers wait.
 */
const BATCH = 2_000
/** The first character of the keys after a key, and before all that don't begin with it: keys have no NUL. */
const FIRST = '\u0001'

/**
 * Opens a store in an LMDB file, or makes one. `put` and `delete` resolve when the change is on disk. Needs the package
 * `lmdb` 3.
 * @throws {MillraceError} `ERR_MILLRACE_CONFIG_STORE` if the path is no LMDB database, or may not be read and written;
 * `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { lmdbConfig } from 'millrace/config/lmdb'
 *
 * const config = lmdbConfig({ path: './limits' })
 * await config.put('user:42', { limit: 1000, window: '1m' })
 * const limiter = createLimiter({ config, default: { limit: 100, window: '1m' } })
 * console.log(limiter.check('user:42').limit) // 1000
 * ```
 */
export function lmdbConfig(options: LmdbConfigOptions): SyncConfigStore {
  return new LmdbConfig(checkOptions(options))
}

class LmdbConfig extends SyncDocumentStore {
  readonly kind = 'lmdb'
  readonly watchDelayMs: number
  readonly #pollMs: number
  readonly #database: LmdbDatabase
  readonly #log: ChangeLog
  readonly #known = new KnownPolicies()
  readonly #writes = new Set<Promise<unknown>>()
  #timer: NodeJS.Timeout | undefined
  #seen = 0
  #isDown = false

  constructor({ path, mapSize, pollMs = DEFAULT_POLL_MS }: LmdbConfigOptions) {
    super()
    this.#pollMs = pollMs
    this.watchDelayMs = 2 * pollMs // a timer may be late
    this.#database = acquire(path, mapSize)
    this.#log = new ChangeLog(this.#database.changes)
  }

  /** As of now: what another process has been acknowledged is there. */
  protected override async read(keys: readonly string[]): Promise<readonly (RawDocument | undefined)[]> {
    this.#database.root.resetReadTxn()
    return this.readNow(keys)
  }

  /** As of the first look-up of this turn of the event loop, give or take a millisecond: lmdb keeps its snapshot. */
  protected readNow(keys: readonly string[]): readonly (RawDocument | undefined)[] {
    const { policies } = this.#database
    const documents: (RawDocument | undefined)[] = []
    for (const key of keys) {
      const text = policies.get(key)
      documents.push(text === undefined ? undefined : { document: this.#known.documentOf(text), token: text })
      if (text !== undefined) break
    }
    return documents
  }

  protected replace(
    key: string,
    expected: RawDocument | undefined,
    next: PolicyDocument | undefined,
  ): Promise<boolean> {
    const { policies } = this.#database
    return this.#write(() => {
      if (policies.get(key) !== expected?.token) return false
      if (next === undefined) void policies.remove(key)
      else void policies.put(key, JSON.stringify(next))
      this.#log.add([key])
      return true
    })
  }

  protected override async putAll(
    entries: readonly PolicyEntry[],
    stored: (key: string) => void,
  ): Promise<void> {
    const { policies } = this.#database
    for (let at = 0; at < entries.length; at += BATCH) {
      this.checkOpen()
      const batch = entries.slice(at, at + BATCH)
      await this.#write(() => {
        for (const { key, policy } of batch) {
          const text = policies.get(key)
          const previous = text === undefined ? 0 : versionIn(documentIn(text))
          void policies.put(key, JSON.stringify(documentOf(policy, nextVersion(previous))))
        }
        this.#log.add(batch.map(({ key }) => key))
      })
      for (const { key } of batch) stored(key)
    }
  }

  /**
   * Runs `act` in a transaction, and resolves when it is on disk. Concurrent ones are committed together. An error in
   * `act` undoes only what `act` has done.
   */
  async #write<T>(act: () => T): Promise<T> {
    checkFile(this.#database)
    const write = this.#database.root.childTransaction(act)
    this.#writes.add(write)
    let result: T
    try {
      result = await write
    } catch (error) {
      throw await commitError(error)
    } finally {
      this.#writes.delete(write)
    }
    if (this.#timer !== undefined) this.#look()
    return result
  }

  protected async page(prefix: string, after: string | undefined, limit: number): Promise<readonly Listed[]> {
    this.#database.root.resetReadTxn()
    const start = after === undefined || byUtf8(prefix, after) > 0 ? prefix || FIRST : after + FIRST
    const page: Listed[] = []
    for (const { key, value } of this.#database.policies.getRange({ start })) {
      if (!key.startsWith(prefix)) break
      page.push({ key, document: this.#known.documentOf(value), token: value })
      if (page.length === limit) break
    }
    return page
  }

  /** On this thread, by the pages of keys, without the texts of policies that LMDB keeps beside them. */
  protected async countDocuments(prefix: string): Promise<number> {
    this.#database.root.resetReadTxn()
    const end = afterPrefix(prefix)
    return this.#database.policies.getKeysCount({ start: prefix || FIRST, ...(end !== undefined && { end }) })
  }

  protected startWatch(): void {
    this.#seen = this.#log.revision
    this.#isDown = false
    this.#timer = setInterval(() => this.#look(), this.#pollMs).unref()
  }

  protected stopWatch(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Tells what has changed since the last look. */
  #look(): void {
    const change = this.#changeSince()
    if (change !== undefined) this.tell(change)
  }

  #changeSince(): ConfigChange | undefined {
    const wasDown = this.#isDown
    try {
      checkFile(this.#database)
      const { revision, keys } = this.#log.since(this.#seen)
      this.#isDown = false
      if (revision === this.#seen && !wasDown) return undefined
      this.#seen = revision
      return keys === undefined || wasDown ? {} : { keys }
    } catch (error) {
      this.#isDown = true
      return wasDown ? undefined : { error: storeError(this.kind, error) }
    }
  }

  protected async end(): Promise<void> {
    await Promise.allSettled(this.#writes)
    await release(this.#database)
  }
}

/** The cause of a failed commit, such as a full disk, which lmdb tells in a promise of its error. */
async function commitError(error: unknown): Promise<unknown> {
  const { commitError: told } = Object(error) as { commitError?: Promise<never> }
  if (told === undefined) return error
  try {
    return await told
  } catch (cause) {
    return cause
  }
}

function checkOptions(options: LmdbConfigOptions): LmdbConfigOptions {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, '{ path }')
  refuseUnknown(options, OPTIONS, (name, expected) => invalid('options', name, expected))
  const { path, mapSize, pollMs } = options
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw invalid('path', path, 'the path of a folder, or of a file with an extension')
  if (mapSize !== undefined && !(Number.isSafeInteger(mapSize) && mapSize >= LEAST_MAP))
    throw invalid('mapSize', mapSize, `a number of bytes from ${LEAST_MAP} on`)
  if (pollMs !== undefined && !(typeof pollMs === 'number' && pollMs >= 1 && pollMs <= LONGEST_POLL_MS))
    throw invalid('pollMs', pollMs, `1 to ${LONGEST_POLL_MS} milliseconds`)
  return options
}
