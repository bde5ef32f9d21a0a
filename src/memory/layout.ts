/**
 * The map of an arena: one run of 32-bit words in a SharedArrayBuffer or a mapped file, for the cells of one shape (a window
 * in n granules). All zero is a valid, empty arena but for its header.
 *
 *     header   128 words, 8 cache lines: what the arena is, its limit, its statistics (below)
 *     names    sets of 16 words: the low half of the fingerprint of the key in each way; one cache line a set
 *     ways     one for each name, in the same order:
 *                HI       the high half of the fingerprint
 *                ADM      epoch:8 | state:2 | total:22    the admission word; all ones in total: blocked
 *                TICK     the newest tick that this cell has seen
 *                AS_OF    epoch:8 | noted:1 | time:23     when total was last summed (smooth edge: in sixteenths); 0: no note
 *                UNTIL    blocked until, in sixteenths of a second from the arena's origin, modulo 2^32; all ones:
 *                         for ever
 *                BUCKETS  one word each: lap:8 | refunds:2 | count:22
 *                nodes    sums of buckets, where a window has many (`range-sum/`): lap:8 | count:24
 *     beside   two words for each way, behind all of them, as only refunds need them (`algorithms/refund-marks.ts`):
 *                GENERATION  how often a mark of a bucket has begun anew
 *                GIVING      how many threads take a charge out of a marked bucket, and from ONE_TURN on, turn a mark
 *
 * With n = 10 a way is 16 words, one cache line. A ring has n + 1 buckets, with nodes above them some more. The bucket of
 * tick t stands in slot t mod ring and bears the lap floor(t / ring) mod 256: one that bears another lap is not of t, so
 * nothing is erased when time passes.
 *
 * Who writes what: HI and the name by the thread that has the way CLAIMED, and nobody else; every other word of a way
 * by compare-exchange, but AS_OF and a first TICK (see `algorithms/sliding-window.ts` and `memory/insertion.ts`).
 */
import { MAX_BUCKETS, MOST_LINEAR } from '../core/rule.js'

export const MAGIC = 0x6d696c6c // 'mill'
/** Changes whenever a word changes its place or meaning. */
export const LAYOUT_VERSION = 3

export const HEADER = {
  MAGIC: 0,
  VERSION: 1,
  /** Granules in a window, 1 to 2^20. */
  BUCKETS: 2,
  SETS: 3,
  /** Milliseconds, a double: words 4 and 5. */
  WINDOW_MS: 4,
  /** The clock's reading at creation, a double: words 6 and 7. UNTIL and NEWEST count from here. */
  ORIGIN_MS: 6,
  SEED_0: 8,
  SEED_1: 9,
  /** An index into `EDGES`. */
  EDGE: 10,
  /** An index into `ON_FULL`. */
  ON_FULL: 11,
  /** The limit: any thread may store another at any time, and all read it anew for each decision. */
  LIMIT: 12,
  /** An index into `SUMS`. */
  RANGE_SUM: 13,
  /** How often the limit was changed. A thread in which calls of `wait` are pending waits on it (`memory/limit.ts`). */
  UPDATES: 14,
  /**
   * The newest clock reading that moved a tick, in sixteenths of a second from the origin. It only rises, and it rises
   * before the tick does: a tick that seems further ahead than this is an old one, seen across the modulus.
   * On a cache line of its own: it is written 16 times a second.
   */
  NEWEST: 16,
  /** Counters of 64 bits, the low word first; on cache lines that decisions don't read. */
  ALLOWED: 32,
  DENIED: 34,
  EVICTED: 36,
  EVICTED_LIVE: 38,
  NO_ROOM: 40,
  /** Ways claimed and not yet named: above 0 at rest, threads died there. */
  CLAIMING: 42,
  /** Blocks that ended before their time, a counter of 64 bits. */
  BLOCKS_EVICTED: 44,
  /** Ways that are LIVE. */
  KEYS: 46,
  /**
   * From here on only in a file that processes share (`shared-file/`). What is added to the machine's monotonic clock to
   * give the arena's time, a double: words 48 and 49. Written only by who has the file alone, before it decides.
   */
  CLOCK_OFFSET_MS: 48,
  /**
   * How far the wall clock was ahead of the arena's time when last noted, at most, a double: words 50 and 51. `Infinity` where the
   * kernel did not vouch for the wall clock. By any process, plainly, once a second: one number, so that a late write is only an
   * old note.
   */
  WALL_AHEAD_MS: 50,
  /** The boot that CLOCK_OFFSET_MS is of: words 52 to 55, all 0 where the system has no name for it. */
  BOOT_ID: 52,
  /** As the file was made with: SETS is what counts, this is for messages. */
  MAX_KEYS: 56,
  /** The rule that a file belongs to (`shared-file/rule-name.ts`): the SHA-256 of its name, words 64 to 71. */
  RULE_DIGEST: 64,
  /** The bytes of its name in UTF-8, also where they are more than fit. */
  RULE_NAME_BYTES: 72,
  /** The start of its name in UTF-8, words 80 to 111; zeros behind it. */
  RULE_NAME: 80,
} as const
export const HEADER_WORDS = 128
export const RULE_DIGEST_WORDS = 8
export const RULE_NAME_WORDS = 32

export const EDGES = ['strict', 'smooth'] as const
export const ON_FULL = ['evict', 'deny', 'allow'] as const
/** What a new key does where both of its sets are full. */
export type OnFull = (typeof ON_FULL)[number]

/** What stands above the buckets of a way, so that a window of many needs not be summed one by one. */
export const SUMS = ['linear', 'blocks', 'fenwick'] as const
export type Sums = (typeof SUMS)[number]

export const WAYS_PER_SET = 16
/** So many of a key's ways may be blocked, half of its two sets (`algorithms/block-bound.ts`). */
export const MOST_BLOCKED = WAYS_PER_SET

/** Offsets within a way. */
export const HI = 0
export const ADM = 1
export const TICK = 2
export const AS_OF = 3
export const UNTIL = 4
export const BUCKETS = 5

/** ADM and the buckets count in the low 22 bits. */
export const COUNT = 0x3fffff
/** ADM: all ones in total. */
export const BLOCKED = COUNT
/** The most that a sum leaves in total, so that no sum looks like a block. */
export const MAX_TOTAL = COUNT - 1

/** ADM: state. FREE is 0, so that zeroed memory is a table of free ways. */
export const STATE = 3 << 22
export const FREE = 0
export const CLAIMED = 1 << 22
export const NAMED = 2 << 22
export const LIVE = 3 << 22

/** ADM and AS_OF: epoch. Adding ONE_EPOCH wraps by itself. */
export const EPOCH = 0xff000000 | 0
export const ONE_EPOCH = 1 << 24
/** AS_OF: set in every note, so that NO_NOTE is none. */
export const NOTED = 1 << 23
/** AS_OF: time. */
export const TIME = 0x7fffff
/** AS_OF: the cell has not been summed since something left a bucket, or since a block. */
export const NO_NOTE = 0

/** A bucket: lap, and the mark of the refunds by key that took from it. */
export const LAP = 0xff000000 | 0
export const LAPS = 256
/** The next lap, as it stands in a bucket or node: wraps by itself. */
export const ONE_LAP = 1 << 24
export const REFUNDS = 3 << 22
export const ONE_REFUND = 1 << 22
/** The mark of a bucket in which charges can't be told from what refunds took. */
export const SUNK = 3
export const refundsOf = (bucket: number): number => (bucket >>> 22) & 3

/** A node counts in the low 24 bits. */
export const NODE_COUNT = 0xffffff
/** A node of the lowest level sums so many buckets, and in block sums one of the second so many of those: 2^6. */
export const BLOCK_BITS = 6
export const BLOCK = 1 << BLOCK_BITS

/** Offsets within what stands beside the ways. */
export const GENERATION = 0
export const GIVING = 1
/** GIVING: a thread that gives a bucket mark 1 again. */
export const ONE_TURN = 1 << 16
export const BESIDE_WORDS = 2

/** UNTIL and NEWEST count in sixteenths of a second. */
export const PER_SECOND = 16
/** UNTIL: blocked for ever. */
export const FOR_EVER = 0xffffffff

/** The places in an arena of one shape. */
export interface Shape {
  readonly windowMs: number
  /** Granules in a window. */
  readonly buckets: number
  readonly sums: Sums
  /** Buckets in a way: one more, for the granule under way, and below nodes some to spare. */
  readonly ring: number
  /** Nodes that sum a block each, and those of the second level. */
  readonly blocks: number
  readonly upper: number
  /** Ticks count modulo the largest multiple of 256 rings below 2^32, so that laps go on across it. */
  readonly modulus: number
  readonly sets: number
  readonly ways: number
  readonly wayWords: number
  readonly waysAt: number
  readonly besideAt: number
  readonly besideWords: number
  readonly words: number
}

export const NAMES_AT = HEADER_WORDS
/** Tables are made for this load: with two sets of 16 to choose from, none overflowed there (8 ways: at 71 %). */
const MAX_LOAD = 0.8

/**
 * Above this a Fenwick tree: at 2^20 buckets its sums take a quarter of the time of block sums, at 86,400 four fifths, where
 * what follows a gap takes 1.6 times as long; below that, block sums are as fast or faster at everything (AMD EPYC Zen 4, Node
 * 20.20, 2026-11-21, `npm run bench -- --case sums --quick`).
 */
const MAX_BLOCK_SUM_BUCKETS = 2 ** 18

/**
 * What a window of so many buckets is summed by. Nobody gets nodes for few: their spans would be longer than the window, and count
 * more than fits into 24 bits.
 */
export function sumsFor(buckets: number, requested?: Sums): Sums {
  if (buckets <= MOST_LINEAR) return 'linear'
  return requested ?? (buckets > MAX_BLOCK_SUM_BUCKETS ? 'fenwick' : 'blocks')
}

/** More blocks than this (a window of 4,096 buckets) are summed on two levels. */
export const MOST_BLOCKS = 64

/**
 * Below nodes the ring is a multiple of the largest span that a node must have for itself, and one such span longer than
 * the window: when a node takes its next lap, all that it counted of the last one has left the window.
 */
export function shapeFor(windowMs: number, buckets: number, sets: number, sums: Sums = 'linear'): Shape {
  const hasUpper = sums === 'blocks' && buckets > MOST_BLOCKS * BLOCK
  const span = sums === 'linear' ? 1 : hasUpper ? BLOCK * BLOCK : BLOCK
  const ring = sums === 'linear' ? buckets + 1 : (Math.ceil((buckets + 1) / span) + 1) * span
  const blocks = sums === 'linear' ? 0 : ring / BLOCK
  const upper = hasUpper ? ring / span : 0
  const ways = sets * WAYS_PER_SET
  const wayWords = BUCKETS + ring + blocks + upper
  const waysAt = NAMES_AT + ways
  const modulus = Math.floor(2 ** 32 / (LAPS * ring)) * LAPS * ring
  const besideAt = waysAt + ways * wayWords
  const besideWords = BESIDE_WORDS
  const words = besideAt + ways * besideWords
  const counts = { windowMs, buckets, sums, ring, blocks, upper, modulus, sets, ways }
  return { ...counts, wayWords, waysAt, besideAt, besideWords, words }
}

/** At least two, so that every key has two to choose from. */
export function setsFor(maxKeys: number): number {
  return Math.max(2, Math.ceil(maxKeys / MAX_LOAD / WAYS_PER_SET))
}

/** What a header may say of its buckets and sets; anything else is not ours. */
export function isShape(buckets: number, sets: number, windowMs: number): boolean {
  return buckets >= 1 && buckets <= MAX_BUCKETS && sets >= 2 && windowMs >= 1 && Number.isFinite(windowMs)
}
