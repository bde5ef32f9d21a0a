import type { LimiterOptions } from 'millrace'

/** A limiter, its keys, and the operations of the threads. */
export interface Shape {
  readonly name: string
  readonly options: Pick<
    LimiterOptions,
    'limit' | 'window' | 'granularity' | 'edge' | 'maxKeys' | 'onFull' | 'rangeSum'
  > & { readonly limit: number; readonly window: number; readonly granularity: number }
  readonly keys: number
  /**
   * `unevenly`: some keys are always over their limit, some never and some just at it, at any speed of the
   * machine. `in turn`: all threads use the same few keys, which change with each tick. A key returns after
   * it has been evicted, so that the threads insert it at the same time.
   */
  readonly picks: 'unevenly' | 'in turn'
  /** The highest cost; costs start at 1. */
  readonly mostCost: number
  /**
   * The unit of judgement. Normally it is a key. With eviction, keys inherit counts, and a key may return
   * with fewer counts than it had. The guarantee is then per way: no way admits more than the limit in a
   * window, over all its keys. So new keys gain at most the capacity of the table.
   */
  readonly column: 'key' | 'way'
  /** Whether refusals are judged; operations are then marked (see `log.ts`). */
  readonly judgesRefusals: boolean
  /**
   * `refunds`: some decisions are refunded later, and some are peeks. `adjusts`: also all operations that
   * change counts.
   */
  readonly also: 'nothing' | 'refunds' | 'adjusts'
  /** The shape's share of all decisions. */
  readonly share: number
}

const MILLISECONDS = { window: 20, granularity: 1, maxKeys: 2_000 }

export const SHAPES: readonly Shape[] = [
  {
    name: 'two hot keys, unmarked',
    options: { ...MILLISECONDS, limit: 2_000 },
    keys: 2,
    picks: 'unevenly',
    mostCost: 1,
    column: 'key',
    judgesRefusals: false,
    also: 'nothing',
    share: 6,
  },
  {
    name: 'mixed keys',
    options: { ...MILLISECONDS, limit: 100 },
    keys: 256,
    picks: 'unevenly',
    mostCost: 1,
    column: 'key',
    judgesRefusals: true,
    also: 'nothing',
    share: 6,
  },
  {
    name: 'costs of 1 to 3, refunded',
    options: { ...MILLISECONDS, limit: 300 },
    keys: 128,
    picks: 'unevenly',
    mostCost: 3,
    column: 'key',
    judgesRefusals: true,
    also: 'refunds',
    share: 4,
  },
  {
    name: 'ten granules of 0.1 ms',
    options: { window: 1, granularity: 0.1, maxKeys: 2_000, limit: 40 },
    keys: 32,
    picks: 'unevenly',
    mostCost: 2,
    column: 'key',
    judgesRefusals: true,
    also: 'nothing',
    share: 5,
  },
  {
    name: 'buckets of 0.1 ms, unmarked',
    options: { window: 2, granularity: 0.1, maxKeys: 2_000, limit: 200 },
    keys: 4,
    picks: 'unevenly',
    mostCost: 3,
    column: 'key',
    judgesRefusals: false,
    also: 'refunds',
    share: 5,
  },
  {
    name: 'block sums of 300 buckets',
    options: { window: 30, granularity: 0.1, maxKeys: 1_000, limit: 600, rangeSum: 'blocks' },
    keys: 32,
    picks: 'unevenly',
    mostCost: 2,
    column: 'key',
    judgesRefusals: true,
    also: 'refunds',
    share: 3,
  },
  {
    name: 'a Fenwick tree of 300 buckets',
    options: { window: 30, granularity: 0.1, maxKeys: 1_000, limit: 600, rangeSum: 'fenwick' },
    keys: 32,
    picks: 'unevenly',
    mostCost: 2,
    column: 'key',
    judgesRefusals: true,
    also: 'refunds',
    share: 3,
  },
  {
    name: 'smooth edge',
    options: { ...MILLISECONDS, limit: 200, edge: 'smooth' },
    keys: 64,
    picks: 'unevenly',
    mostCost: 2,
    column: 'key',
    judgesRefusals: true,
    also: 'refunds',
    share: 4,
  },
  {
    name: 'adjustments',
    options: { ...MILLISECONDS, limit: 200 },
    keys: 16,
    picks: 'unevenly',
    mostCost: 1,
    column: 'key',
    judgesRefusals: false,
    also: 'adjusts',
    share: 2,
  },
  {
    name: 'more keys than ways, denied',
    options: { window: 2, granularity: 0.5, maxKeys: 100, limit: 5, onFull: 'deny' },
    keys: 400,
    picks: 'unevenly',
    mostCost: 1,
    column: 'key',
    judgesRefusals: false,
    also: 'nothing',
    share: 1,
  },
  {
    name: 'more keys than ways, each in turn',
    options: { window: 1, granularity: 0.25, maxKeys: 100, limit: 5, onFull: 'deny' },
    keys: 200,
    picks: 'in turn',
    mostCost: 1,
    column: 'key',
    judgesRefusals: false,
    also: 'nothing',
    share: 2,
  },
  {
    // The table has a thousand ways. With a hundred, an admission word changes its key a thousand times a
    // second. Its epoch has eight bits, so the word can return to an old value while a thread stops for a
    // tenth of a second, which the protocol cannot detect. With a hundred ways, one window in 28 million
    // decisions was over the limit.
    name: 'more keys than ways, evicted',
    options: { window: 20, granularity: 1, maxKeys: 1_000, limit: 50, onFull: 'evict' },
    keys: 4_000,
    picks: 'unevenly',
    mostCost: 2,
    column: 'way',
    judgesRefusals: false,
    also: 'refunds',
    share: 1,
  },
]
