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
