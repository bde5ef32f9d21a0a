import { count, readCounter } from './counters.js'
import { HEADER } from './layout.js'
import type { Arena } from './records.js'
import { load } from './words.js'

/**
 * Counts of all threads of a limiter. Each thread adds its decisions at the latest after 256 of them, and when it closes.
 * Reading them takes microseconds for any size of the table (`npm run bench -- --case stats`).
 */
export interface Statistics {
  /**
   * Keys that have a place in the table. A key keeps its place, even when nothing of it counts any more,
   * until another key takes the place. So this number grows to the number of places and stays there. It is
   * exact while no thread gives a key a place. A thread that dies at that moment may leave it wrong by one. A
   * process that opens a shared file alone counts the keys again if the machine may have restarted, or if
   * `lostWays` is above 0. Otherwise the error stays.
   */
  keys: number
  /** Places of the table. `maxKeys` keys fill 80 % of them. `keys / places` says how full it is. */
  places: number
  /** Admitted decisions, also those that charged nothing. */
  allowed: number
  /** Refused decisions. */
  denied: number
  /** Decisions that a rule would have refused if it were enforced. They count as `allowed`. */
  shadowDenied: number
  /** Keys whose place another key took, even if nothing of them counted any more. */
  evicted: number
  /** Evicted keys that still counted: `maxKeys` is too small for the keys in use. */
  evictedLive: number
  /** Decisions, blocks and penalties for which a new key found no place. */
  noRoom: number
  /** Blocks that ended early, because more than half of the places that a key may have were blocked. */
  blocksEvicted: number
  /**
   * Calls that gave up because words of the memory contradict each other, as after a flipped bit. Their keys are
   * refused. 0 in sound memory. Always 0 on Redis and Memcached.
   */
  damaged: number
  /** Places that threads are taking at this moment, or were taking when they died. */
  lostWays: number
  /** The size of the shared memory in bytes, used or not. */
  bytes: number
}

/**
 * Adds a thread's decisions to the statistics. A number below 0 takes back decisions that have been added
 * before, perhaps by another thread.
 */
export function countDecisions(
  { words }: Arena,
  allowed: number,
  denied: number,
  shadowDenied: number,
): void {
  if (shadowDenied !== 0) count(words, HEADER.SHADOW_DENIED, shadowDenied)
  if (allowed !== 0) count(words, HEADER.ALLOWED, allowed)
  if (denied !== 0) count(words, HEADER.DENIED, denied)
}

export function readStatistics({ words, buffer, shape }: Arena): Statistics {
  return {
    keys: Math.max(0, load(words, HEADER.KEYS)),
    places: shape.ways,
    allowed: readCounter(words, HEADER.ALLOWED),
    denied: readCounter(words, HEADER.DENIED),
    shadowDenied: readCounter(words, HEADER.SHADOW_DENIED),
    evicted: readCounter(words, HEADER.EVICTED),
    evictedLive: readCounter(words, HEADER.EVICTED_LIVE),
    noRoom: readCounter(words, HEADER.NO_ROOM),
    blocksEvicted: readCounter(words, HEADER.BLOCKS_EVICTED),
    damaged: readCounter(words, HEADER.DAMAGED),
    lostWays: load(words, HEADER.CLAIMING),
    bytes: buffer.byteLength,
  }
}
