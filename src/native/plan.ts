/** Where `native/addon.cc` looks for the numbers that a batch is decided by; it exports the same names. */
export const PLAN = {
  WINDOW_MS: 0,
  ORIGIN_MS: 1,
  GRANULES: 2,
  SETS: 3,
  IS_SMOOTH: 4,
  LIMIT: 5,
  FROM: 6,
  TO: 7,
  NOW_MS: 8,
  /** 1: at every 64th key. */
  READS_CLOCK_ITSELF: 9,
  /** Written by the addon. */
  ADMITTED: 10,
} as const
export const PLAN_FIELDS = Object.keys(PLAN).length
