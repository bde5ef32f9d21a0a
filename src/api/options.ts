import type { Clock } from '../core/clock.js'
import type { Signal } from '../core/on-abort.js'
import type { RuleOptions } from '../core/rule-options.js'
import type { OnFull } from '../memory/layout.js'
import type { AsyncLimiter } from './async-limiter.js'
import type { Limiter } from './limiter.js'
import type { PoolOptions } from './pool-options.js'

/** The options of a limiter beside its rules: where its counts live, and where decisions run. */
export interface TableOptions {
  /**
   * How many keys can count at the same time: an integer of 1 or more. It fixes the size of the table when
   * the limiter is created: about 345 bytes for each key at the default granularity, 95 at a tenth of the
   * window, and so much for each rule. The operating system provides the memory when keys first use it. If it is too small, keys
   * displace each other (`stats().evictedLive`).
   * @default 100_000
   */
  maxKeys?: number | undefined
  /**
   * The fate of a new key when its part of the table is full of keys that still count.
   * - `'evict'`: it takes the place and the counts of the key that has used least. So invented keys win no
   *   fresh quota, but a new client may start with the counts of another.
   * - `'deny'`: it is refused.
   * - `'allow'`: it is admitted, and not counted.
   * @default 'evict'
   */
  onFull?: OnFull | undefined
  /**
   * Where decisions run. `'inline'`: on the calling thread, synchronously.
   * `'pool'`: on worker threads, as promises; see {@link PoolLimiterOptions}.
   * @default 'inline'
   */
  engine?: 'inline' | undefined
  /**
   * The source of time. A test passes {@link manualClock}. A clock of your own must stay less than one
   * granularity apart from those of other attached threads.
   * @default the monotonic clock of the operating system
   */
  clock?: Clock | undefined
  /**
   * A file for the counts. All processes that name the same file share one limit, and the counts survive a
   * restart of the processes. The file is created if it does not exist, with mode 0600, and its disk space is
   * reserved at once.
   *
   * A file belongs to its rules: every process must pass the same `maxKeys` and `onFull`, and for each rule,
   * in the same order, the same `name`, `unit`, `window`, `granularity`, `edge`, `align`, `period`,
   * `timeZone`, `rangeSum`, `countRefused` and `shadow`. The last `limit` of each rule holds for all processes, as with `update`. It
   * needs Linux or macOS, the C++ addon of this package, and no `clock`. Never truncate an open file: the
   * operating system would kill the processes.
   * @default counts in the memory of this process
   */
  shared?: { file: string } | undefined
  /**
   * Asks Linux for pages of 2 MiB for the table of keys. With a million keys, most of a decision's time is misses of
   * memory and of the processor's table of pages; huge pages save the latter. The cost: resident memory grows by
   * 2 MiB at a time, so a table with few keys, which lie apart, soon takes its whole size. It needs the C++ addon, and
   * a kernel whose `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always` (with `never` nothing
   * changes). Not with `shared`.
   * @default false
   */
  hugePages?: boolean | undefined
  /**
   * From which share of a limit on a key is near it, for `nearLimit` in `stats()`: above 0, at most 1.
   * @default 0.8
   * @example
   * ```ts
   * import { createLimiter } from 'millrace'
   *
   * createLimiter({ limit: 100, window: '1m', nearLimit: 0.9 }) // counts admissions that leave 10 or fewer
   * ```
   */
  nearLimit?: number | undefined
}

/** The options of {@link createLimiter} and {@link openLimiter} for one rule. */
export interface LimiterOptions extends RuleOptions, TableOptions {
  /** Several rules at once, instead of the options of one: see {@link RulesLimiterOptions}. */
  rules?: undefined
}

/** The type of a rule's option beside `rules`. No value has it; the compiler shows its text. */
type OnlyWithoutRules = 'this option belongs into a rule of rules'

/** The options of {@link createLimiter} and {@link openLimiter} for several rules, all or nothing. */
export interface RulesLimiterOptions extends TableOptions, OptionsOfNoRule {
  /**
   * The rules: 1 to 16, each with a `name` of its own. A request is admitted if all rules admit it, and then
   * each is charged. If one refuses, none is charged.
   */
  rules: readonly RuleOptions[]
}

/** The options of one rule, which have no place beside `rules`. */
type OptionsOfNoRule = { [Name in keyof RuleOptions]?: OnlyWithoutRules }

/**
 * The options of a limiter that decides on the worker threads of a pool, and returns promises. With several
 * rules: `RulesEngineOptions<'pool'>`.
 */
export interface PoolLimiterOptions extends Omit<LimiterOptions, 'engine'> {
  /** Decides on worker threads. */
  engine: 'pool'
  /**
   * The number of threads, and how many keys may be pending.
   * @default the defaults of {@link PoolOptions}
   */
  pool?: PoolOptions | undefined
  /**
   * The source of time: a {@link manualClock}. Workers can't call the functions of another thread, so a clock
   * of your own is refused.
   * @default the monotonic clock of the operating system
   */
  clock?: Clock | undefined
}

/** The options of {@link openLimiter} for its wait. */
export interface OpeningOptions {
  /**
   * Ends the wait: the call rejects with the signal's reason, and leaves nothing open.
   * @default a wait of at most ten seconds
   */
  signal?: Signal | undefined
}

/** The names of the engines: where a limiter decides. */
export type Engine = 'inline' | 'pool'

/** The type of `pool` without `engine: 'pool'`. No value has it; the compiler shows its text. */
type OnlyWithEnginePool = "pool is only allowed with engine: 'pool'"

/** The options of either engine as one type, so that a wrong option is one compile error at that option. */
export interface EngineOptions<Name extends Engine>
  extends Omit<LimiterOptions, 'engine'>,
    EngineChoice<Name> {}

/** The options of either engine with several rules as one type. */
export interface RulesEngineOptions<Name extends Engine>
  extends Omit<RulesLimiterOptions, 'engine'>,
    EngineChoice<Name> {}

/** The engine of a limiter, and its threads. */
export interface EngineChoice<Name extends Engine> {
  /**
   * Where decisions run. `'inline'`: on the calling thread, synchronously. `'pool'`: on worker threads, as
   * promises.
   * @default 'inline'
   */
  engine?: Name | undefined
  /** The threads of `engine: 'pool'`. Not allowed with another engine. */
  pool?: ('pool' extends Name ? PoolOptions : OnlyWithEnginePool) | undefined
}

/** The limiter of an engine: {@link AsyncLimiter} for `'pool'`, else {@link Limiter}. */
export type LimiterOf<Name extends Engine> = Name extends 'pool' ? AsyncLimiter : Limiter
