import { invalid } from '../core/errors.js'
/** Policies on several stores: each key on the ones that rendezvous hashing gives it. */
import { refuseUnknown } from '../core/option-names.js'
import type { ConfigStore, SyncConfigStore } from './config-store.js'
import { isSync } from './config-store.js'

import { checkShards, type Shards } from './stores/sharded/shard-lists.js'
import { type MoveReport, ShardedConfig, SyncShardedConfig } from './stores/sharded/sharded-store.js'

export type * from './store-types.js'
export type { Shards } from './stores/sharded/shard-lists.js'
export type { MoveReport } from './stores/sharded/sharded-store.js'

/** Options of {@link shardedConfig}. */
export interface ShardedConfigOptions {
  /**
   * On how many shards each policy is: 1 to the number of shards. Reads need one of them, changes need all.
   * @default 1
   */
  replicas?: number
  /**
   * The shards before a change of the list, with the stores that are in both lists: the same objects. Until `move` has
   * ended, policies are found there as well.
   */
  previous?: Shards
}

/** A store on several shards. */
export interface ShardedConfigStore extends ConfigStore {
  /**
   * Takes another list of shards. The list before is still asked, until `move` has moved what belongs elsewhere now.
   * Shards that are in both lists are the same objects, with the same names.
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION`; also if policies of an earlier change have not been moved
   */
  reshard(stores: Shards): void
  /**
   * Moves the policies that belong on other shards, and then forgets the list before. Each is copied with its version,
   * and then deleted at the old place if it is the same there still, so a change during the move is not lost. It also
   * makes replicas equal, for instance of a shard that has lost its data. It may be called again after an error.
   * Documents that are no policies stay where they are.
   */
  move(): Promise<MoveReport>
}

/**
 * Spreads policies over several stores: databases, or files of LMDB on several disks. A key is on the shards with the
 * highest scores of its name and theirs (rendezvous hashing), so that of n shards a new one takes a part of 1/n of the
 * keys, and no other key moves. The names of shards must therefore stay what they are; those of a list are its indices.
 *
 * Prefixes such as `user:*` are keys, too. `find` asks each shard that may have one of the keys once, all at the same
 * time. If a shard does not answer, its keys are asked of their replicas, or else `find` rejects, unless a more specific
 * key has a policy on another shard.
 *
 * Of a key's shards the first decides: a change is made there with `ifVersion`, then on the others, and is acknowledged
 * when all have been seen to have it. If one of them does not answer, the call rejects; the change may be there all the
 * same, on some of them, and is completed by the next change of the key, or by `move`. A policy that was half deleted
 * may come back so. Thus no acknowledged change is lost with one shard of two, and no replica is read that does not
 * know it.
 *
 * When a shard is added: give all processes the new list, with the present one as `previous` or by `reshard`; then call
 * `move` in one process, and after it in the others. A process that has only the old list misses what has been moved.
 * Two processes must not move at the same time. A deletion by another process in the very moment in which `move` copies
 * that key may be undone.
 *
 * The store takes its shards over: `close` closes them. If all answer at once, it has `findNow`.
 *
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { lmdbConfig } from 'millrace/config/lmdb'
 * import { shardedConfig } from 'millrace/config/sharded'
 *
 * const [a, b, c] = ['a', 'b', 'c'].map((disk) => lmdbConfig({ path: `/disks/${disk}/limits` }))
 * const store = shardedConfig({ a, b })
 * await store.put('user:42', { limit: 1000, window: '1m' })
 * store.reshard({ a, b, c })
 * console.log(await store.move()) // { moved: 1, invalid: [] }, if it is on c now
 * ```
 */
export function shardedConfig(
  stores: readonly SyncConfigStore[] | Readonly<Record<string, SyncConfigStore>>,
  options?: ShardedConfigOptions,
): ShardedConfigStore & SyncConfigStore
export function shardedConfig(stores: Shards, options?: ShardedConfigOptions): ShardedConfigStore
export function shardedConfig(stores: Shards, options: ShardedConfigOptions = {}): ShardedConfigStore {
  if (typeof options !== 'object' || options === null)
    throw invalid('options', options, '{ replicas, previous }')
  refuseUnknown(options, ['replicas', 'previous'], (name, expected) => invalid('options', name, expected))
  const { replicas = 1, previous } = options
  if (!Number.isInteger(replicas) || replicas < 1) throw invalid('replicas', replicas, 'an integer from 1 on')
  const present = checkShards(stores, replicas, 'stores')
  const before = previous === undefined ? undefined : checkShards(previous, replicas, 'previous')
  const areSync = [...present, ...(before ?? [])].every(({ store }) => isSync(store))
  return new (areSync ? SyncShardedConfig : ShardedConfig)(present, before, replicas)
}
