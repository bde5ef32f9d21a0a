/**
 * The numbers that TypeScript and the addon exchange in typed arrays. `constants.ts` hands their indices to
 * C++.
 */
import { type NativeCounting, nativeCounting } from '../algorithms/select.js'
import { SUMS } from '../memory/layout.js'
import type { Arena } from '../memory/records.js'

/** Indices into a `NativeParams` array: the shape of the arena, then one call's arguments and result. */
export const PARAM = {
  WINDOW_MS: 0,
  ORIGIN_MS: 1,
  BUCKETS: 2,
  SETS: 3,
  /** 1 for the smooth edge, 0 for the strict edge. */
  IS_SMOOTH: 4,
  /** An index into `SUMS`. */
  SUMS: 5,
  LIMIT: 6,
  /** The first entry to decide, or the ring cursor of the first request. */
  FROM: 7,
  /** One past the last. */
  TO: 8,
  NOW_MS: 9,
  /** 1: the addon reads the clock before every `KEYS_PER_READING`-th key. 0: `NOW_MS` holds for all keys. */
  READS_CLOCK: 10,
  /** Written by the addon: how many it admitted. */
  ADMITTED: 11,
  /** The record, and what it adds to each tick. */
  RECORD: 12,
  SHIFT: 13,
  /** The granules of the window for which the cells are made. */
  CELL_BUCKETS: 14,
  /** What a cell counts by: an index of `COUNTING`. */
  COUNTING: 15,
  /** The time units of a full token bucket, or the entries of a log. */
  UNITS: 16,
  /** Added to each reading, in milliseconds. */
  OFFSET_MS: 17,
  /** In, of a batch: from where on an admission is a suspect, and from how many used units on its key is near the limit. */
  SUSPECT_FROM: 18,
  NEAR_FROM: 19,
  /** Written by the addon: how many admissions have left their keys near the limit. */
  NEAR: 20,
} as const
/** How the cells of an algorithm count that the addon has. */
export const COUNTING = { BUCKETS: 0, FIXED_WINDOW: 1, TOKEN_BUCKET: 2, LOG: 3 } as const satisfies Record<
  NativeCounting,
  number
>
export const PARAM_COUNT = Object.keys(PARAM).length

/** The arguments of one call of the addon, indexed by `PARAM`. */
export type NativeParams = Float64Array

/**
 * Indices into the memory of a single call (`NativeSingle`). Doubles come first and count in doubles; words
 * follow and count in 32-bit words.
 */
export const CALL = {
  /** Double: the clock's reading in milliseconds. The addon writes it if it reads the clock. */
  NOW_MS: 0,
  /**
   * Double, in: the span to sum (USAGE), or the moment of the refusal (RETRY_AFTER), in milliseconds. Out,
   * with FIGURES: `retryAfterMs`.
   */
  MS: 1,
  /**
   * Double, out: the units found (USAGE), or the milliseconds to wait (RETRY_AFTER). With FIGURES: `resetMs`.
   */
  ANSWER: 2,
  OPERATION: 6,
  LO: 7,
  HI: 8,
  COST: 9,
  /** In: the way where the key may be, or NO_WAY. Out: the way where it was. */
  WAY: 10,
  STATUS: 11,
  /** In: the limit of CHECK_WITHIN and RETRY_AFTER. Out: the limit that decided. */
  LIMIT: 12,
  TICK: 13,
  STAMP: 14,
  READS_CLOCK: 15,
  ADM: 16,
  UNTIL: 17,
  /** In: 1: a refusal is UNANSWERED. It changes no count. */
  LEAVES_REFUSALS: 18,
  /** Out, with FIGURES: the units left. */
  REMAINING: 19,
  /** The number of decisions that are to compute their figures (`FiguresDemand`). Each counts it down. */
  DEMAND: 20,
  /** In: which admissions are a SUSPECT. Those by this limit whose words come to SUSPECT_FROM, and all by others. */
  SUSPECT_LIMIT: 21,
  SUSPECT_FROM: 22,
} as const
export const CALL_WORDS = 24 // even, for the doubles
/** CHECK decides by the limit in the header, CHECK_WITHIN by LIMIT. */
export const OPERATION = { CHECK: 0, USAGE: 1, RETRY_AFTER: 2, CHECK_WITHIN: 3 } as const
/**
 * UNANSWERED: the addon changed nothing, and TypeScript answers. DONE: the cost was admitted, or ANSWER is
 * set. FIGURES, a bit of DONE or REFUSED: the figures of the decision are set. SUSPECT, a bit of DONE: the key may be near
 * its limit.
 */
export const STATUS = { UNANSWERED: 0, REFUSED: 1, DONE: 2, FIGURES: 4, SUSPECT: 8 } as const

/** Stands for a way where there is none. */
export const NO_WAY = -1

/** A batch keeps this many words of each refused entry: way, admission word, tick and UNTIL. */
export const SEEN_WORDS = 4

/** One reading of the clock holds for this many keys of a batch. The clock costs a third of a decision. */
export const KEYS_PER_READING = 64

/** Params that describe the arena by one of its records; the caller sets the rest for each call. */
export function paramsFor(arena: Arena): NativeParams {
  const { shape, originMs, edge } = arena
  const counting = nativeCounting(arena)
  const params = new Float64Array(PARAM_COUNT)
  params[PARAM.WINDOW_MS] = shape.windowMs
  params[PARAM.ORIGIN_MS] = originMs
  params[PARAM.BUCKETS] = shape.buckets
  params[PARAM.SETS] = shape.sets
  params[PARAM.RECORD] = shape.record
  params[PARAM.SHIFT] = shape.shift
  params[PARAM.CELL_BUCKETS] = shape.cellBuckets
  params[PARAM.COUNTING] = COUNTING[counting]
  params[PARAM.UNITS] = shape.units
  params[PARAM.OFFSET_MS] = shape.offsetMs
  params[PARAM.IS_SMOOTH] = edge === 'smooth' ? 1 : 0
  params[PARAM.SUMS] = SUMS.indexOf(shape.sums)
  return params
}
