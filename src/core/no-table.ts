/** The part of `stats()` that is of a table in memory, of what has none. */
export const NO_TABLE = {
  keys: 0,
  places: 0,
  evicted: 0,
  evictedLive: 0,
  noRoom: 0,
  blocksEvicted: 0,
  damaged: 0,
  lostWays: 0,
  bytes: 0,
  native: 'none',
} as const
