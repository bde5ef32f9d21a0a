import { ALGORITHM_ROWS, serverOf } from '../../core/algorithms.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import type { RemoteStore } from '../../remote/remote-store.js'
import { possiblyCharged, type Shard, storeOf } from './shard.js'

/**
 * Refunds a key that is charged at several shards. The first one has all its charges, the others have only those
 * since a change. A refund takes out the oldest, so the others give back only what they have more than the first one
 * has left.
 *
 * Each shard has a clock of its own, and charges go on meanwhile. So what a later one has is read before, without the
 * granule that leaves next, and what is left at the first one is read afterwards: both make its refund smaller.
 *
 * @returns the units of each rule, times its unit
 */
export async function refundInTurn(
  shards: readonly Shard[],
  rules: readonly RemoteRule[],
  key: string,
  units: readonly number[],
): Promise<number[]> {
  const [first, ...later] = shards.map(storeOf) as [RemoteStore, ...RemoteStore[]]
  const had = await Promise.all(later.map((store) => usedAt(store, rules, key, withoutGranule)))
  const given = await first.change('refund', key, units)
  try {
    const left = await usedAt(first, rules, key, ({ rule }) => rule.windowMs)
    await Promise.all(
      later.map(async (store, s) => {
        const less = rules.map(({ rule: { unit = 1 } }, i) =>
          Math.max(0, Math.min(given[i]!, had[s]![i]! - left[i]!) / unit),
        )
        if (less.some((own) => own > 0)) await store.change('refund', key, less)
      }),
    )
  } catch (error) {
    throw possiblyCharged(error)
  }
  return given
}

function withoutGranule({ rule, parts }: RemoteRule): number {
  const { isDated } = ALGORITHM_ROWS[rule.algorithm]
  return Math.floor(rule.windowMs - (isDated ? serverOf(rule.algorithm).granuleMs(rule.windowMs, parts) : 0))
}

const usedAt = (
  store: RemoteStore,
  rules: readonly RemoteRule[],
  key: string,
  ms: (rule: RemoteRule) => number,
): Promise<number[]> => Promise.all(rules.map((rule, i) => store.usage(key, ms(rule), i)))
