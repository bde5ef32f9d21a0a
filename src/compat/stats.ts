// What `stats()` of a drop-in returns: the counts of a limiter that decides on the calling thread.
import type { Limiter, LimiterStats } from '../api/limiter.js'
import { DecisionCounts } from '../core/decision-counts.js'
import { NO_TABLE } from '../core/no-table.js'
import { sumOf } from '../core/sum-of.js'

/** The name of a rule that has none, as of a limiter. */
export const RULE = 'default'

/** The numbers of tables that only grow. */
const GROWING = ['evicted', 'evictedLive', 'noRoom', 'blocksEvicted', 'damaged'] as const

/** What tables say of themselves. */
export type TableStats = Pick<
  LimiterStats,
  'keys' | 'places' | 'bytes' | 'lostWays' | 'native' | (typeof GROWING)[number]
>

/** The tables of several limiters: `keys` and `places` are those of the fullest one, in which a key counts once. */
export const tablesOf = (limiters: Iterable<Limiter>): TableStats =>
  joined(Array.from(limiters, (each) => each.stats()))

/** The same of what is known of tables already. */
export function joined(tables: Iterable<TableStats>): TableStats {
  const all: { -readonly [Name in keyof TableStats]: TableStats[Name] } = { ...NO_TABLE }
  for (const table of tables) {
    for (const name of [...GROWING, 'lostWays', 'bytes'] as const) all[name] += table[name]
    if (table.keys * all.places >= all.keys * table.places && table.places > 0) {
      all.keys = table.keys
      all.places = table.places
    }
    if (table.native === 'addon') all.native = 'addon'
  }
  return all
}

/** What remains of tables that are closed: what they have counted. */
export function afterClosing(tables: TableStats): TableStats {
  const left: { -readonly [Name in keyof TableStats]: TableStats[Name] } = { ...NO_TABLE }
  for (const name of GROWING) left[name] = tables[name]
  return left
}

/**
 * The counts of a drop-in. No other thread counts in its memory, so what all have decided is what it has decided itself.
 * @param shared what others have decided, too, if its limiter is shared
 */
export function statsOf(
  counts: Iterable<Pick<DecisionCounts, 'present'>>,
  tables: TableStats,
  {
    waiting = 0,
    shared,
  }: { readonly waiting?: number; readonly shared?: LimiterStats['shared'] | undefined } = {},
): LimiterStats {
  let own = new DecisionCounts().present()
  for (const each of counts) own = sumOf(own, each.present())
  const { admitted, refused, shadowRefused } = shared ?? own
  const decided = { allowed: admitted, denied: refused, shadowDenied: shadowRefused }
  return { ...tables, ...decided, own, shared: { admitted, refused, shadowRefused }, waiting }
}
