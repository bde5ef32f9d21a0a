/**
 * The map of an arena, and the words for its parts. Other files use these words without explaining them.
 *
 * **Arena.** An arena is one run of 32-bit words in a SharedArrayBuffer or a mapped file. It holds the counts
 * of all keys of one rule. An arena that is all zeros, except for its header and its first record, is valid
 * and empty.
 *
 * **Records.** A *record* is one version of the rule: its window, its granules, its edge. A changed window
 * makes a new record. The header says which record holds at present (CURRENT). Each cell says in its name by
 * which record it counts. `algorithms/conversion.ts` brings a cell from one record to another.
 *
 * **Time.** A record divides its window into n *granules* of equal length. A granule is the smallest span of
 * time that the limiter distinguishes. Its length is the granularity. A *tick* is the number of a granule:
 * floor(now * n / window) + the record's SHIFT. The shift makes each tick of a record at least two rings
 * greater than all ticks of earlier records, so the ticks of a cell only rise when it changes its record.
 *
 * **Counts.** A *bucket* is a word that counts the units charged in one tick. The buckets of a key form a
 * *ring*: slot t mod ring holds the bucket of tick t. A ring has n + 1 buckets, because a window that ends
 * inside a granule overlaps n + 1 of them. A *lap* is one round of the ring. A bucket bears the lap of its
 * tick, floor(t / ring) mod 256. A bucket that bears any other lap does not belong to tick t, so nothing is
 * erased when time passes. The *sweep* clears each old count long before its lap number returns. A *node* is
 * a word that counts a whole range of buckets. Only windows of more than 256 granules have nodes
 * (`range-sum/`), and their rings have some spare buckets.
 *
 * **Keys.** A *fingerprint* is the 57-bit hash of a key. The arena holds fingerprints, never keys. A *way* is
 * a place for one key. Its *name* is the fingerprint of the key that has it together with the cell's record,
 * and its *cell* is the words that hold the state of that key. `base` is the index of a cell's first word. A *set* is 16 ways whose names
 * share a cache line. A key may have a way in either of two sets.
 *
 * **The admission word** (ADM) of a cell decides whether the key has room. Its parts:
 *  - *total*: the units that count against the limit, or more. All ones: the key is *blocked*, until UNTIL.
 *  - *state*: FREE (no key has the way), CLAIMED and NAMED (a thread is giving it to a key), LIVE (a key has
 *    it).
 *  - *epoch*: a version number, modulo 256. A change gives a new epoch if each compare-exchange that still
 *    expects the old word must fail.
 *
 * **The note** (AS_OF) of a cell says in which tick its total was last summed from its buckets, and with
 * which epoch. While it matches the cell, a total without room needs no new sum.
 *
 * **Refunds.** Giving back, `refund(decision)`, takes out that decision's own charge. A refund by key,
 * `refund(key, cost)`, takes any units of the key. A *refund mark* is two bits of a bucket. They change with
 * each refund by key that takes from the bucket. The *generation* of a cell counts how often a mark of its
 * buckets has started again. A *stamp* is the mark and the generation that a charge found. It shows later
 * whether a refund by key has taken from the bucket since.
 *
 *     header   128 words, 8 cache lines: what the arena is, its limit, its statistics (`HEADER`)
 *     records  64 records of 16 words (`RECORD`)
 *     names    sets of 16 words: for each way the low half of its name; one cache line for each set
 *     cells    one for each way, in the same order:
 *                HI       the high half of the name: hash:25 | converting:1 | record:6
 *                ADM      epoch:8 | state:2 | total:22
 *                TICK     the cell's tick: the newest tick that any thread has brought it to
 *                AS_OF    epoch:8 | noted:1 | time:23     time: the tick; with the smooth edge, in sixteenths
 *                UNTIL    end of the block, in sixteenths of a second from the arena's origin, modulo 2^32;
 *                         all ones: for ever. A way's next key finds its highest bit changed.
 *                BUCKETS  one word each: lap:8 | refund mark:2 | count:22
 *                nodes    one word each: lap:8 | count:24
 * An algorithm without buckets (`algorithms/word/word-cells.ts`) has only the first five words, and no extra words:
 *                ADM      epoch:8 | state:2 | blocked:1 | meter:21
 *                TICK     tick:30 | settled:1
 *                AS_OF    recent refunds (`algorithms/word/recent-refunds.ts`)
 * A log (`algorithms/log/log-entry.ts`) has no extra words, and instead of buckets:
 *                HINT, REFUNDS, PERIOD
 *                entries  one word for each unit: tick:28 | counts:1 | version:3
 *                AS_OF    epoch:8 | noted:1 | time:23     time: the tick at which the first unit leaves
 *
 *     extra    two words for each way, after all cells. Only refunds use them (`algorithms/window/refund-marks.ts`):
 *                GENERATION
 *                GIVING   low 16 bits: threads that give back a charge of a marked bucket;
 *                         high 16 bits: threads that give a bucket mark 1 again
 *
 *     past     PAST, PAST_UNTIL, CARRIED, CARRIED_TICK of each way, after all others (`algorithms/past.ts`)
 *
 * With n = 10 a cell has 16 words, one cache line.
 *
 * Who writes what: the thread that has a way CLAIMED writes its name, and no other thread does. Every other
 * word of a way is written by compare-exchange, or by an atomic addition. The exceptions are the note, HINT, and
 * the first TICK and PERIOD of a way (`algorithms/window/sliding-window.ts`, `memory/insertion.ts`).
 */

import { ALGORITHM_ROWS, type AlgorithmName } from '../core/algorithms.js'
import type { Sums } from '../core/cell-size.js'

export { ALGORITHMS } from '../core/algorithms.js'
export {
  BLOCK,
  BLOCK_BITS,
  EXTRA_WORDS,
  LAPS,
  MOST_BLOCKS,
  SUMS,
  type Sums,
  sumsFor,
} from '../core/cell-size.js'
export { ALIGNS, EDGES, PERIODS } from '../core/rule-algorithms.js'

export const MAGIC = 0x6d696c6c // 'mill'
/** Changes if a word changes its place or its meaning. */
export const LAYOUT_VERSION = 8

export const HEADER = {
  MAGIC: 0,
  VERSION: 1,
  /** The granules of a window for which the cells are made, 1 to 2^20: those of the first record. */
  BUCKETS: 2,
  SETS: 3,
  /** The number of records that have been given out, 1 to `MOST_RECORDS` or more. It only rises. */
  RECORDS_USED: 4,
  /** The arena's origin: the clock's reading at creation, in milliseconds, a double: words 6 and 7. */
  ORIGIN_MS: 6,
  SEED_0: 8,
  SEED_1: 9,
  /** An index into `ON_FULL`. */
  ON_FULL: 11,
  /**
   * The rule that holds at present: record:8 | limit:24. Any thread may replace it at any time. Each decision
   * reads it. Both are in one word, so that they change together.
   */
  CURRENT: 12,
  /** An index into `SUMS`. */
  RANGE_SUM: 13,
  /**
   * Counts changes of the rule, and calls of `clearAll`. A thread with pending calls of `wait` waits on this
   * word (`memory/limit.ts`).
   */
  UPDATES: 14,
  /** The number of arenas after this one in the same buffer (`memory/arenas.ts`). */
  FOLLOWING: 15,
  /**
   * The newest clock reading that moved a tick, in sixteenths of a second from the origin. It only rises, and
   * it rises before the tick does. So a tick that seems to be further ahead than this is an old one, from
   * before the ticks wrapped. It is written up to 16 times a second, so it has a cache line of its own.
   */
  NEWEST: 16,
  /**
   * With `align: 'calendar'`: the bounds of the present period, in minutes since 1970 by the system's time, 32 bits each,
   * in one 64-bit integer: words 18 and 19 (`memory/calendar-ticks.ts`). 0: none has begun.
   */
  PERIOD: 18,
  /** The rule's option `timeZone`, in UTF-8, then zeros: words 20 to 31. It never changes. */
  TIME_ZONE: 20,
  /** 64-bit counters, the low word first. Decisions do not read their cache lines. */
  ALLOWED: 32,
  DENIED: 34,
  EVICTED: 36,
  EVICTED_LIVE: 38,
  NO_ROOM: 40,
  /** Ways that are CLAIMED. Above 0 while no thread inserts a key: threads died there. */
  CLAIMING: 42,
  /** Blocks that ended early, a 64-bit counter. */
  BLOCKS_EVICTED: 44,
  /** Ways that are LIVE. */
  KEYS: 46,
  /**
   * The words from here to SHADOW_DENIED are used only in a file that processes share (`shared-file/`). This
   * one is the arena's time minus the machine's monotonic clock, in milliseconds, a double: words 48 and 49.
   * Only a process that has the file alone writes it, before its first decision.
   */
  CLOCK_OFFSET_MS: 48,
  /**
   * The wall clock minus the arena's time, at most, in milliseconds, a double: words 50 and 51. `Infinity` if
   * the kernel does not know how wrong the wall clock may be. Any process writes it, once a second, by a
   * plain write. It is one number, so a write that arrives late only leaves an older value.
   */
  WALL_AHEAD_MS: 50,
  /**
   * The boot for which CLOCK_OFFSET_MS holds: words 52 to 55. All 0 if the system does not name its boots.
   */
  BOOT_ID: 52,
  /** The option with which the file was created, for error messages. SETS is what counts. */
  MAX_KEYS: 56,
  /** The SHA-256 of the name of the file's rule (`shared-file/rule-name.ts`): words 64 to 71. */
  RULE_DIGEST: 64,
  /** The length of that name in bytes of UTF-8, even if it does not fit. */
  RULE_NAME_BYTES: 72,
  /** The start of that name in UTF-8, then zeros: words 80 to 111. */
  RULE_NAME: 80,
  /** Decisions that a rule that is not enforced would have refused, a 64-bit counter. */
  SHADOW_DENIED: 112,
  /** The rule's options that are true: a bit each (`OptionRow.flag` in `core/rule-options.ts`). They never change. */
  FLAGS: 114,
  /** The rule's option `unit`, or 0: words 116 and 117 (`memory/unit.ts`). The limit is in such units. */
  UNIT: 116,
  /**
   * Only in a file: the machine's uptime minus the arena's time, at least, in milliseconds, a double: words 118
   * and 119. 0 if it is unknown. Written with CLOCK_OFFSET_MS.
   */
  UP_AHEAD_MS: 118,
  /** Calls that gave up because the memory is damaged (`core/tries.ts`), a 64-bit counter. */
  DAMAGED: 120,
} as const
export const HEADER_WORDS = 128
export const TIME_ZONE_WORDS = 12
export const RULE_DIGEST_WORDS = 8
export const RULE_NAME_WORDS = 32

/** CURRENT: the index of the record above, the limit below. */
export const CURRENT_RECORD_SHIFT = 24
export const CURRENT_LIMIT = 0xffffff

/** Offsets in a record. */
export const RECORD = {
  /** The window in milliseconds, a double: words 0 and 1. */
  WINDOW_MS: 0,
  /** Granules in the window, 1 to 2^20. */
  BUCKETS: 2,
  /** Added to each tick, modulo `Shape.modulus`. */
  SHIFT: 3,
  /** An index into `EDGES`. */
  EDGE: 4,
  /** An index into `ALGORITHMS`. */
  ALGORITHM: 5,
  /** The time units in the window of a token bucket; the entries of a log; otherwise 0. */
  UNITS: 6,
  /** An index into `ALIGNS`. */
  ALIGN: 7,
  /** Added to each reading, so that ticks begin at UTC, in milliseconds, a double: words 8 and 9. */
  OFFSET_MS: 8,
  /** The options `limit` and `burst` of a rule that has a burst; otherwise 0. */
  RATE_LIMIT: 10,
  RATE_BURST: 11,
  /** When the one before ended, as UNTIL of a cell. 0: not known. */
  BEGUN: 12,
  /** An index into `PERIODS`. */
  PERIOD: 13,
} as const
export const RECORD_WORDS = 16
/** A record is never used again, so a rule can have this many windows in its life. */
export const MOST_RECORDS = 64

export const ON_FULL = ['evict', 'deny', 'allow'] as const
/**
 * What happens to a new key if its part of the table is full: see the option `onFull` of {@link
 * createLimiter}.
 */
export type OnFull = (typeof ON_FULL)[number]

export const WAYS_PER_SET = 16
/** How many ways of a key's two sets may be blocked: half of them (`algorithms/block-bound.ts`). */
export const MOST_BLOCKED = WAYS_PER_SET

/** Offsets in a cell. */
export const HI = 0
/** HI: the bits of the key's hash. The others are 0 in a fingerprint. */
export const HASH = ~0x7f
/** HI: set while the cell changes to the record that the lower bits name (`algorithms/conversion.ts`). */
export const CONVERTING = 0x40
/** HI: the record of the cell. */
export const CELL_RECORD = 0x3f
export const ADM = 1
export const TICK = 2
export const AS_OF = 3
export const UNTIL = 4
export const BUCKETS = 5

/** ADM and the buckets count in the low 22 bits. */
export const COUNT = 0x3fffff
/** ADM: all ones in total. */
export const BLOCKED = COUNT
/** The largest total that is no block. */
export const MAX_TOTAL = COUNT - 1

/** ADM: state. FREE is 0, so that zeroed memory is a table of free ways. */
export const STATE = 3 << 22
export const FREE = 0
export const CLAIMED = 1 << 22
export const NAMED = 2 << 22
export const LIVE = 3 << 22

/** ADM and AS_OF: epoch. Adding ONE_EPOCH wraps around. */
export const EPOCH = 0xff000000 | 0
export const ONE_EPOCH = 1 << 24
/** AS_OF: set in every note, so that no note equals NO_NOTE. */
export const NOTED = 1 << 23
/** AS_OF: time. */
export const TIME = 0x7fffff
/** AS_OF: not summed since units were taken out of a bucket, or since a block began. */
export const NO_NOTE = 0

/** Offsets in the past of a way. */
export const PAST = 0
export const PAST_UNTIL = 1
export const CARRIED = 2
export const CARRIED_TICK = 3
export const PAST_WORDS = 4

/** A bucket or a node: lap. */
export const LAP = 0xff000000 | 0
export const LAP_SHIFT = 24
/** A bucket or a node: one lap. Adding it wraps around. */
export const ONE_LAP = 1 << LAP_SHIFT
/** A bucket: refund mark. */
export const REFUNDS = 3 << 22
export const ONE_REFUND = 1 << 22
/** The mark of a bucket whose charges may be among the units that refunds by key took. */
export const SUNK = 3
export const refundsOf = (bucket: number): number => (bucket >>> 22) & 3

/** A node: count. */
export const NODE_COUNT = 0xffffff
/** Offsets in the extra words of a way. */
export const GENERATION = 0
export const GIVING = 1
/** GIVING: one thread that gives a bucket mark 1 again. */
export const ONE_TURN = 1 << 16

/** UNTIL and NEWEST count in sixteenths of a second. */
export const PER_SECOND = 16
/** UNTIL: blocked for ever. */
export const FOR_EVER = 0xffffffff

/** The size of each part of an arena, where it begins, in words, and how one of its records counts time. */
export interface Shape {
  readonly windowMs: number
  /** Granules in a window. */
  readonly buckets: number
  /** The index of the record, 0 to `MOST_RECORDS` - 1. */
  readonly record: number
  /** Added to each tick of the record. */
  readonly shift: number
  /** Added to each reading of the clock, in milliseconds. */
  readonly offsetMs: number
  /** @see RECORD.UNITS */
  readonly units: number
  /** The granules of the window for which the cells are made: those of the first record. */
  readonly cellBuckets: number
  /** The fewest and the most granules of a window that the cells can count. */
  readonly leastBuckets: number
  readonly mostBuckets: number
  readonly sums: Sums
  /** Buckets in a cell: `buckets` + 1, or more if there are nodes. */
  readonly ring: number
  /** Blocks, each of which has a node; and nodes of the second level. */
  readonly blocks: number
  readonly upper: number
  /** Ticks wrap here: at the largest multiple of 256 rings below 2^32, so that laps continue across it. */
  readonly modulus: number
  readonly sets: number
  readonly ways: number
  readonly wayWords: number
  readonly waysAt: number
  readonly extraAt: number
  readonly extraWords: number
  readonly pastAt: number
  readonly words: number
}

export const RECORDS_AT = HEADER_WORDS
export const NAMES_AT = RECORDS_AT + MOST_RECORDS * RECORD_WORDS
/**
 * The load of a table with `maxKeys` keys. With two sets of 16 ways none overflowed. Sets of 8 ways overflow
 * from a load of 0.71.
 */
const MAX_LOAD = 0.8

/** What a shape needs to know of a rule beside its window. */
export interface CellRule {
  readonly algorithm: AlgorithmName
  readonly units: number
  readonly offsetMs: number
}
const SLIDING: CellRule = { algorithm: 'sliding-window', units: 0, offsetMs: 0 }

/** The shape of an arena, by its first record. */
export function shapeFor(
  windowMs: number,
  buckets: number,
  sets: number,
  sums: Sums = 'linear',
  { algorithm, units, offsetMs }: CellRule = SLIDING,
): Shape {
  const cell = ALGORITHM_ROWS[algorithm].cell(buckets, units, sums)
  const { extraWords } = cell
  const ways = sets * WAYS_PER_SET
  const wayWords = BUCKETS + cell.words
  const waysAt = NAMES_AT + ways
  const extraAt = waysAt + ways * wayWords
  const pastAt = extraAt + ways * extraWords
  return {
    windowMs,
    buckets,
    record: 0,
    shift: 0,
    offsetMs,
    units,
    cellBuckets: buckets,
    leastBuckets: cell.leastBuckets,
    mostBuckets: cell.mostBuckets,
    sums,
    ring: cell.ring,
    blocks: cell.blocks,
    upper: cell.upper,
    modulus: cell.modulus,
    sets,
    ways,
    wayWords,
    waysAt,
    extraAt,
    extraWords,
    pastAt,
    words: pastAt + ways * PAST_WORDS,
  }
}

/** Every key has two sets to choose from. */
export const MIN_SETS = 2

/** The number of sets in a table for `maxKeys` keys. */
export function setsFor(maxKeys: number): number {
  return Math.max(MIN_SETS, Math.ceil(maxKeys / MAX_LOAD / WAYS_PER_SET))
}

/** Whether a record of this algorithm may have these values. */
export function isWindow(algorithm: AlgorithmName, buckets: number, windowMs: number): boolean {
  return isBuckets(algorithm, buckets) && windowMs >= 1 && Number.isFinite(windowMs)
}

/** Whether a window may have so many granules. */
export function isBuckets(algorithm: AlgorithmName, buckets: number): boolean {
  return buckets >= 1 && buckets <= ALGORITHM_ROWS[algorithm].mostBuckets
}
