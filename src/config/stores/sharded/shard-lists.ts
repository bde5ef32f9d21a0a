import { invalid } from '../../../core/errors.js'
// Which shards a key has, now and before a change of the list of shards.
import { Rendezvous } from '../../../core/rendezvous.js'
import type { ConfigStore } from '../../config-store.js'

import type { Shard } from './shard-search.js'

/** The shards of a sharded store: a list, whose names are `'0'`, `'1'` and so on, or by their names. */
export type Shards = readonly ConfigStore[] | Readonly<Record<string, ConfigStore>>

const METHODS = ['get', 'find', 'put', 'delete', 'list', 'watch', 'addCheck', 'close'] as const

export function checkShards(stores: Shards, replicas: number, option: string): Shard[] {
  const expected = 'a list of configuration stores, or an object of them by their names'
  if (typeof stores !== 'object' || stores === null) throw invalid(option, stores, expected)
  const shards = Object.entries(stores).map(([name, store]): Shard => {
    const isStore = METHODS.every((method) => typeof Object(store)[method] === 'function')
    if (!isStore) throw invalid(`${option}.${name}`, store, 'a configuration store')
    return { name, store }
  })
  if (new Set(shards.map(({ store }) => store)).size < shards.length)
    throw invalid(option, 'one store twice', 'a store only once')
  if (shards.length < replicas)
    throw invalid(option, shards.length, `at least ${replicas} shards, as there are ${replicas} replicas`)
  return shards
}

/**
 * The shards as they are known in another list.
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` if one has another name there, or a name another store
 */
export function joined(shards: readonly Shard[], known: readonly Shard[], option: string): Shard[] {
  return shards.map((shard) => {
    const same = known.find(({ name, store }) => name === shard.name || store === shard.store)
    if (same === undefined) return shard
    if (same.name === shard.name && same.store === shard.store) return same
    const expected = `the same store under the same name as before (${same.name})`
    throw invalid(`${option}.${shard.name}`, shard.store, expected)
  })
}

/** A list of shards, over which keys are spread. */
export class ShardList {
  readonly all: readonly Shard[]
  readonly #replicas: number
  readonly #keys: Rendezvous<Shard>

  constructor(all: readonly Shard[], replicas: number) {
    this.all = all
    this.#replicas = replicas
    this.#keys = new Rendezvous(all.map((shard) => [shard.name, shard]))
  }

  /** The shards that have the key: the one that decides about changes, then its replicas. */
  of(key: string): readonly Shard[] {
    return this.#replicas === 1 ? [this.#keys.find(key)] : this.#keys.ranked(key, this.#replicas)
  }
}
