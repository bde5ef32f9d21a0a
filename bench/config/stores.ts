// LMDB stores full of policies, in a temporary folder.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lmdbConfig, type Policy, type PolicyEntry, type SyncConfigStore } from 'millrace/config/lmdb'
import { shardedConfig } from 'millrace/config/sharded'
import { checkShards, ShardList } from '#millrace/config/stores/sharded/shard-lists.js'
import { random } from '../../test/algorithms/random.js'

/** The entries of a call of `putMany`. */
const ENTRIES = 20_000
/** Keys of one length, whose order is that of their numbers. */
const DIGITS = 8

/** Plans, as a service has them: most keys have one of few policies, some have their own limit. */
const PLANS: readonly Policy[] = [
  { limit: 100, window: '1m' },
  { limit: 1_000, window: '1m', algorithm: 'token-bucket' },
  {
    rules: [
      { name: 'burst', limit: 50, window: '1s' },
      { name: 'hourly', limit: 10_000, window: '1h' },
    ],
  },
]

export const keyOf = (i: number): string => `user:${String(i).padStart(DIGITS, '0')}`

export const policyOf = (i: number): Policy =>
  i % 10 === 0 ? { limit: 1 + (i % 1_000_000), window: '1m' } : PLANS[i % PLANS.length]!

export interface Loaded {
  /** The LMDB store, or several as one. */
  readonly store: SyncConfigStore
  readonly loadMs: number
  /** Of all files. */
  readonly bytes: number
}

/** Loads this many policies into one or several LMDB stores, by the order of their keys or in a random one. */
export async function withPolicies<T>(
  policies: number,
  { stores: count = 1, isShuffled = false },
  use: (loaded: Loaded) => T | Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-policies-'))
  const paths = Array.from({ length: count }, (_, i) => join(folder, `store-${i}`))
  const stores = paths.map((path) => lmdbConfig({ path }))
  const store = count === 1 ? stores[0]! : shardedConfig(stores)
  try {
    const shards = new ShardList(checkShards(stores, 1, 'stores'), 1)
    const startMs = performance.now()
    for (let at = 0; at < policies; at += ENTRIES) {
      const batches = new Map(shards.all.map((shard) => [shard, [] as PolicyEntry[]]))
      for (let i = at; i < Math.min(at + ENTRIES, policies); i++) {
        const number = isShuffled ? shuffled(i, policies) : i
        const key = keyOf(number)
        batches.get(shards.of(key)[0]!)!.push({ key, policy: policyOf(number) })
      }
      await Promise.all([...batches].map(([shard, entries]) => shard.store.putMany!(entries)))
    }
    const loadMs = performance.now() - startMs
    const bytes = paths.reduce((sum, path) => sum + statSync(join(path, 'data.mdb')).size, 0)
    return await use({ store, loadMs, bytes })
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

/** A prime that divides no number of policies below it: `i * PRIME` meets each number once. */
const PRIME = 2_147_483_647

const shuffled = (i: number, count: number): number => Number((BigInt(i) * BigInt(PRIME)) % BigInt(count))

/** Keys of random policies, made before time is taken. */
export function randomKeys(policies: number, count: number): string[] {
  const next = random(1)
  return Array.from({ length: count }, () => keyOf(Math.floor(next() * policies)))
}
