// The contract of a configuration store: which policy a key has. Each backend fulfils it alike, see
// `test/conformance/config-stores.ts`.
import type { MillraceError } from '../core/errors.js'
import type { Policy } from './policy.js'

/** A policy as a store holds it. */
export interface StoredPolicy {
  /** The key of a client, or a prefix of keys such as `'user:*'`. */
  readonly key: string
  /** The rules of the key. */
  readonly policy: Policy
  /**
   * A whole number from 1 on, which rises with each change of the key, also when the policy is deleted and put
   * again. 0: a document without a version, as a person writes it by hand.
   */
  readonly version: number
}

/** A document in a store that is no policy. */
export interface InvalidPolicy {
  readonly key: string
  readonly policy?: undefined
  readonly version?: undefined
  /** What is wrong with it: `ERR_MILLRACE_INVALID_POLICY`. */
  readonly error: MillraceError
}

/** A policy to be stored. */
export interface PolicyEntry {
  readonly key: string
  readonly policy: Policy
}

/** Options of {@link ConfigStore.put} and {@link ConfigStore.delete}. */
export interface PutOptions {
  /**
   * The version that the key must have, of the {@link StoredPolicy} that the change is based on; `null`: none, the
   * key must not have a policy. With another version the call rejects with `ERR_MILLRACE_CONFIG_CONFLICT`, and
   * nothing changes.
   * @default any version
   */
  ifVersion?: number | null
  /**
   * The version that the policy gets, for a copy of what another store has. Only `put` has it; it makes sense only with
   * `ifVersion`, as the versions of a key must rise.
   * @default one greater than all before
   */
  version?: number
}

/** Options of {@link ConfigStore.list}. */
export interface ListOptions {
  /** Only keys that begin with these characters. */
  prefix?: string
  /** Only keys after this one, in the order of their UTF-8 bytes: the last key of the page before. */
  after?: string
  /**
   * The most policies of a page: 1 to 10,000. A shorter page is the last one.
   * @default 100
   */
  limit?: number
}

/** A change that a store tells its listeners. */
export interface ConfigChange {
  /** The keys whose policies may have changed; undefined: any may have, as messages may have been lost. */
  readonly keys?: readonly string[]
  /** Why changes may be unknown for now: the store is down, or a document can't be read. */
  readonly error?: MillraceError
}

export type ConfigListener = (change: ConfigChange) => void

/**
 * A store of policies. All methods but `watch` return promises; they reject with `ERR_MILLRACE_CONFIG_STORE` if the
 * store can't be reached, and with `ERR_MILLRACE_CLOSED` after `close`.
 * @example
 * ```ts
 * import { memoryConfig } from 'millrace/config/memory'
 *
 * const store = memoryConfig()
 * const { version } = await store.put('user:42', { limit: 1000, window: '1m' })
 * await store.put('user:42', { limit: 2000, window: '1m' }, { ifVersion: version })
 * console.log((await store.get('user:42'))?.policy)
 * ```
 */
export interface ConfigStore {
  /** The name of the backend, such as `'lmdb'`. */
  readonly kind: string
  /**
   * Within how many milliseconds `watch` tells what other processes change, if nothing fails. Infinity: it does not
   * tell. Then a limiter notices a change when its cache asks again.
   */
  readonly watchDelayMs: number
  /**
   * Reads the policy of exactly this key.
   * @param key the key of a client, or a prefix such as `'user:*'`
   * @returns a promise of the policy with its version; of undefined if there is none
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_POLICY` if the document is none
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * console.log((await store.get('user:42'))?.version)
   * ```
   */
  get(key: string): Promise<StoredPolicy | undefined>
  /**
   * Reads the policy of the first of these keys that has one, in one round trip.
   * @param keys the keys, the most specific first. Those that can't have a policy are passed over
   * @returns a promise of the policy with its key and version; of undefined if none has one
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_POLICY` if the document of that key is none
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * console.log((await store.find(['user:42', 'user:*']))?.key)
   * ```
   */
  find(keys: readonly string[]): Promise<StoredPolicy | undefined>
  /**
   * Stores a policy.
   * @param key the key of a client, or a prefix such as `'user:*'`: 1 to 512 characters
   * @param policy the options of one rule, or `rules`
   * @param options the version that the key must have
   * @returns a promise of the policy with its new version. It resolves when the store has it for good
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_POLICY`, `ERR_MILLRACE_INVALID_KEY`,
   * `ERR_MILLRACE_CONFIG_CONFLICT`, `ERR_MILLRACE_POLICY_TOO_LARGE` if a limiter that uses this store could not count it
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * await store.put('user:42', { limit: 1000, window: '1m' })
   * ```
   */
  put(key: string, policy: Policy, options?: PutOptions): Promise<StoredPolicy>
  /**
   * Stores many policies, faster than by as many calls of `put`. Each is checked before the first is stored, and each
   * gets a new version. Of several with the same key the last one counts. If the call rejects later on, some of them
   * may be stored. Not all stores have it.
   * @param entries keys and their policies
   * @returns a promise that resolves when the store has all of them for good
   * @throws {MillraceError} (rejects) as `put` does; `option` names the entry: `entries[3]: limit`
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * await store.putMany?.([{ key: 'user:42', policy: { limit: 1000, window: '1m' } }])
   * ```
   */
  putMany?(entries: readonly PolicyEntry[]): Promise<void>
  /**
   * Deletes a policy.
   * @param key the key of the policy
   * @param options the version that the key must have
   * @returns a promise of whether there was one
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CONFIG_CONFLICT`
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * console.log(await store.delete('user:42'))
   * ```
   */
  delete(key: string, options?: PutOptions): Promise<boolean>
  /**
   * Lists a page of policies, in the order of the UTF-8 bytes of their keys.
   * @param options a prefix, the last key of the page before, and the size of the page
   * @returns a promise of the policies, and of documents that are none with what is wrong
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * for (const { key } of await store.list({ prefix: 'user:' })) console.log(key)
   * ```
   */
  list(options?: ListOptions): Promise<readonly (StoredPolicy | InvalidPolicy)[]>
  /**
   * Says about how many policies there are, without reading them where the backend can. Documents that are none count
   * as well. While nobody changes the store it is exact, but for an index of DynamoDB that is behind. A sharded store
   * needs all of its shards for it, and counts old copies until `move` has deleted them. Not all stores have it.
   * @param options only keys that begin with `prefix`
   * @returns a promise of the number
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * console.log(await store.count?.({ prefix: 'user:' }))
   * ```
   */
  count?(options?: { prefix?: string }): Promise<number>
  /**
   * Tells every change, of this process and of others.
   * @param listener called with the keys that have changed
   * @returns a function that ends this
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * const end = store.watch(({ keys }) => console.log(keys))
   * end()
   * ```
   */
  watch(listener: ConfigListener): () => void
  /**
   * Lets a function refuse policies that `put` gets, by throwing.
   * @param check called with each policy before it is stored
   * @param failed called with a policy that `check` has let pass, if the store does not write it after all, or fails
   * before it knows whether it has. It must not throw
   * @returns a function that ends this
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * store.addCheck((policy) => {
   *   if ('rules' in policy) throw new Error('one rule only')
   * })
   * ```
   */
  addCheck(check: (policy: Policy) => void, failed?: (policy: Policy) => void): () => void
  /**
   * Ends the watch and all connections that the store has made. It may be called twice.
   * @returns a promise that resolves when all is closed
   * @example
   * ```ts
   * import { memoryConfig } from 'millrace/config/memory'
   *
   * const store = memoryConfig()
   * await store.close()
   * ```
   */
  close(): Promise<void>
}

/** A store that answers at once, without a promise. */
export interface SyncConfigStore extends ConfigStore {
  /** @see ConfigStore.find */
  findNow(keys: readonly string[]): StoredPolicy | undefined
}

export const isSync = (store: ConfigStore): store is SyncConfigStore =>
  typeof (store as Partial<SyncConfigStore>).findNow === 'function'
