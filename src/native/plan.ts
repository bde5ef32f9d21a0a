import type { Arena } from '../memory/arena.js'
import { SUMS } from '../memory/layout.js'

/** Where `native/addon.cc` looks for the numbers that a batch is decided by; it exports the same names. */
export const PLAN = {
  WINDOW_MS: 0,
  ORIGIN_MS: 1,
  GRANULES: 2,
  SETS: 3,
  IS_SMOOTH: 4,
  /** An index into `SUMS`. */
  RANGE_SUM: 5,
  LIMIT: 6,
  FROM: 7,
  TO: 8,
  NOW_MS: 9,
  /** 1: at every 64th key. */
  READS_CLOCK_ITSELF: 10,
  /** Written by the addon. */
  ADMITTED: 11,
} as const
export const PLAN_FIELDS = Object.keys(PLAN).length

/** Whether the addon takes such a plan: numbers of time beyond this no reading can be told apart by, as TypeScript says. */
export function isTaken({ shape, originMs }: Arena): boolean {
  return shape.windowMs <= Number.MAX_SAFE_INTEGER && Math.abs(originMs) <= Number.MAX_SAFE_INTEGER
}

/** A plan that says what the arena is. */
export function planFor({ shape, originMs, edge }: Arena): Float64Array {
  const plan = new Float64Array(PLAN_FIELDS)
  plan[PLAN.WINDOW_MS] = shape.windowMs
  plan[PLAN.ORIGIN_MS] = originMs
  plan[PLAN.GRANULES] = shape.buckets
  plan[PLAN.SETS] = shape.sets
  plan[PLAN.IS_SMOOTH] = edge === 'smooth' ? 1 : 0
  plan[PLAN.RANGE_SUM] = SUMS.indexOf(shape.sums)
  return plan
}

/** Where `native/single.h` looks for what a single call is to do, and leaves what came of it; it exports the same names. */
export const CALL = {
  /** Doubles, by their own index: the reading (written where the addon reads the clock); a span or moment asked about; the answer. */
  NOW_MS: 0,
  MS: 1,
  ANSWER: 2,
  /** 32-bit words, behind them. */
  WHAT: 6,
  LO: 7,
  HI: 8,
  COST: 9,
  /** Where the key may be, or -1; and then where it was. */
  WAY: 10,
  FOUND: 11,
  LIMIT: 12,
  TICK: 13,
  REFUNDS: 14,
  READS_CLOCK: 15,
  ADM: 16,
  UNTIL: 17,
  WORDS: 18,
} as const
export const WHAT = { CHECK: 0, USAGE: 1, RETRY: 2 } as const
export const FOUND = { NOTHING: 0, FULL: 1, ADMITTED: 2 } as const
