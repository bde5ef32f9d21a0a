/**
 * The words of a sliding log, after the head of its cell: HINT, the entry to look at first; REFUNDS, which counts
 * refunds by key; PERIOD, when the cell's tick last moved, in periods of 2^31 milliseconds; then the entries. An entry is `tick:28 | counts:1 | version:3`.
 */
import { WORDS_BEFORE_ENTRIES } from '../../core/cell-size.js'
import { BUCKETS } from '../../memory/layout.js'

export const HINT = BUCKETS
export const REFUNDS = BUCKETS + 1
export const PERIOD = BUCKETS + 2
export const ENTRIES = BUCKETS + WORDS_BEFORE_ENTRIES

export const VERSIONS = 7
export const COUNTS = 8
export const TICK_SHIFT = 4
const TICKS = 2 ** 28 - 1

/** Ticks by which an entry may be ahead of the cell's tick of a thread that stalls. */
export const MOST_AHEAD = 2 ** 22
/** The length of a period, in milliseconds. */
export const PERIOD_MS = 2 ** 31

export const periodOf = (nowMs: number): number => Math.floor(nowMs / PERIOD_MS) | 0

/** A cell's tick moves in hops of at most so many ticks. At their multiples, entries that are out are cleared. */
export const SWEEP_TICKS = 2 ** 25
/** An entry's ticks wrap here. */
export const ENTRY_TICKS = TICKS + 1

export const counts = (entry: number): boolean => (entry & COUNTS) !== 0

/** The ticks from an entry's to `tick`, as its 28 bits tell: below 0 if the entry is ahead. */
export function ageOf(entry: number, tick: number): number {
  const age = (tick - (entry >>> TICK_SHIFT)) & TICKS
  return age >= ENTRY_TICKS - MOST_AHEAD ? age - ENTRY_TICKS : age
}

/** The word that follows `entry` with a unit in `tick`. */
export const charged = (entry: number, tick: number): number =>
  (tick << TICK_SHIFT) | COUNTS | ((entry + 1) & VERSIONS)

/** The word that follows `entry` with no unit. */
export const cleared = (entry: number): number => (entry & ~(COUNTS | VERSIONS)) | ((entry + 1) & VERSIONS)
