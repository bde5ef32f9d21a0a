import type { Arena } from './arena.js'
import { readCounter } from './counters.js'
import { HEADER } from './layout.js'
import { load } from './words.js'

/**
 * What has happened to a limiter in all its threads; each thread adds its decisions every 256, and when it closes. Each figure
 * is one that is kept: to read them takes microseconds, whatever the size of the table (`npm run bench -- --case stats`).
 */
export interface Statistics {
  /**
   * Keys that hold a place of the table. A key keeps its place, also when it counts nothing any more, until another key
   * takes it: so this grows to the number of places and stays there. Exact when no thread is giving a key a place, but that
   * a thread which dies at that very moment may leave it one too high or too low. A process that opens a shared file alone
   * counts again if the machine may have restarted, or if `lostWays` is above 0; otherwise the error stays.
   */
  keys: number
  allowed: number
  denied: number
  /** Keys whose place another key took, whether or not they still counted. */
  evicted: number
  /** Of those, the ones that still counted: `maxKeys` is too small for the keys at work. */
  evictedLive: number
  /** Decisions, blocks and penalties that found no room for a new key. */
  noRoom: number
  /** Blocks that ended before their time, because more than half of the places that a key may have were blocked. */
  blocksEvicted: number
  /** Places lost to threads that died while they were taking one (or that are taking one right now). */
  lostWays: number
  /** The size of the shared memory, touched or not. */
  bytes: number
}

export function readStatistics({ words, buffer }: Arena): Statistics {
  return {
    keys: Math.max(0, load(words, HEADER.KEYS)),
    allowed: readCounter(words, HEADER.ALLOWED),
    denied: readCounter(words, HEADER.DENIED),
    evicted: readCounter(words, HEADER.EVICTED),
    evictedLive: readCounter(words, HEADER.EVICTED_LIVE),
    noRoom: readCounter(words, HEADER.NO_ROOM),
    blocksEvicted: readCounter(words, HEADER.BLOCKS_EVICTED),
    lostWays: load(words, HEADER.CLAIMING),
    bytes: buffer.byteLength,
  }
}
