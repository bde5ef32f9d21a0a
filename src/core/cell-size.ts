/** The number of words of a cell after its head. */
import { MOST_LINEAR } from './granularity.js'
import { MOST_LOG_TICKS } from './rule-algorithms.js'

/** How a window is summed: bucket by bucket, or by one of two structures of nodes. */
export const SUMS = ['linear', 'blocks', 'fenwick'] as const
export type Sums = (typeof SUMS)[number]

/** A bucket or a node: the number of laps. */
export const LAPS = 256
/** A block is 64 buckets. A node of block sums counts one block, and one of their second level 64 blocks. */
export const BLOCK_BITS = 6
export const BLOCK = 1 << BLOCK_BITS
/** Block sums of more blocks than this (a window of 4,096 buckets) have two levels. */
export const MOST_BLOCKS = 64
/** The words of a way that only refunds of the sliding window use, after all cells. */
export const EXTRA_WORDS = 2

/**
 * The ticks of a cell that has no buckets wrap here: a tick and one bit are a small integer of V8. A ring
 * that the cell does not have: no charge counts for as many ticks.
 */
export const WORD_MODULUS = 2 ** 30
const WORD_RING = 2 ** 14
/** The most granules of a window that such a cell counts by. */
export const MOST_WORD_BUCKETS = 2 ** 12

/** The words of a cell, and what follows from them. */
export interface CellSize {
  /** The words after the head. */
  readonly words: number
  readonly extraWords: number
  /** Buckets in a cell, or a number of ticks after which nothing counts. */
  readonly ring: number
  readonly blocks: number
  readonly upper: number
  readonly modulus: number
  readonly leastBuckets: number
  readonly mostBuckets: number
}

/**
 * Windows of more buckets use a Fenwick tree. Compared with block sums, its sums take 0.25 of the time at
 * 2^20 buckets, and 0.8 at 86,400 buckets. There, the decision after a gap takes 1.6 of the time. With fewer
 * buckets, block sums are as fast or faster at everything (AMD EPYC Zen 4, Node 20.20, 2026-11-21,
 * `npm run bench -- --case sums`).
 */
const MAX_BLOCK_SUM_BUCKETS = 2 ** 18

/**
 * How a window of `buckets` granules is summed. A small window never has nodes: a node would span more than
 * the window, and could count more than fits into 24 bits.
 */
export function sumsFor(buckets: number, requested?: Sums): Sums {
  if (buckets <= MOST_LINEAR) return 'linear'
  return requested ?? (buckets > MAX_BLOCK_SUM_BUCKETS ? 'fenwick' : 'blocks')
}

/**
 * Whether a log of `limit` units takes less memory than the buckets of a sliding window.
 */
export function isLogSmaller(limit: number, buckets: number, sums: Sums): boolean {
  const { words, extraWords } = ringCell(buckets, 0, sums)
  return WORDS_BEFORE_ENTRIES + limit < words + extraWords
}

/** A cell of an algorithm that keeps all counts of a key in its admission word. */
export const wordCell = (): CellSize => WORD_CELL

const WORD_CELL: CellSize = {
  words: 0,
  extraWords: 0,
  ring: WORD_RING,
  blocks: 0,
  upper: 0,
  modulus: WORD_MODULUS,
  leastBuckets: 1,
  mostBuckets: MOST_WORD_BUCKETS,
}

/** The words of a log before its entries: `algorithms/log/log-entry.ts`. */
export const WORDS_BEFORE_ENTRIES = 3

/** A log of so many entries. */
export const logCell = (_buckets: number, entries: number): CellSize => ({
  ...LOG_CELL,
  words: WORDS_BEFORE_ENTRIES + entries,
})

const LOG_CELL: CellSize = {
  words: WORDS_BEFORE_ENTRIES,
  extraWords: 0,
  ring: 2 ** 27,
  blocks: 0,
  upper: 0,
  modulus: 2 ** 32,
  leastBuckets: 1,
  mostBuckets: MOST_LOG_TICKS,
}

/**
 * A ring of buckets, and nodes above them. With nodes, the ring is a multiple of the span of its largest blocks,
 * and at least one such span longer than the window. So all that a block counted in its last lap has left the
 * window when it takes the next lap.
 */
export function ringCell(buckets: number, _units: number, sums: Sums): CellSize {
  const hasUpper = sums === 'blocks' && buckets > MOST_BLOCKS * BLOCK
  const span = sums === 'linear' ? 1 : hasUpper ? BLOCK * BLOCK : BLOCK
  const ring = sums === 'linear' ? buckets + 1 : (Math.ceil((buckets + 1) / span) + 1) * span
  const blocks = sums === 'linear' ? 0 : ring / BLOCK
  const upper = hasUpper ? ring / span : 0
  return {
    words: ring + blocks + upper,
    extraWords: EXTRA_WORDS,
    ring,
    blocks,
    upper,
    modulus: Math.floor(2 ** 32 / (LAPS * ring)) * LAPS * ring,
    leastBuckets: leastBuckets(buckets, sums, hasUpper),
    mostBuckets: ring - (blocks && span) - 1,
  }
}

/**
 * The fewest granules of a window that the nodes of such cells can count: no node may span more than three
 * windows, or it could count more than fits into 24 bits. The largest node of a Fenwick tree spans the ring.
 */
function leastBuckets(buckets: number, sums: Sums, hasUpper: boolean): number {
  if (sums === 'linear') return 1
  if (sums === 'fenwick') return Math.max(MOST_LINEAR + 1, Math.ceil(buckets / 2))
  return hasUpper ? MOST_BLOCKS * BLOCK + 1 : MOST_LINEAR + 1
}
