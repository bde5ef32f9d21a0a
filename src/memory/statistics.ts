import type { Reading } from '../core/reading.js'
import type { Arena } from './arena.js'
import { counted } from './counters.js'
import type { Cells } from './insertion.js'
import { ADM, HEADER, LIVE, STATE, TICK, WAYS_PER_SET } from './layout.js'
import { load, read } from './words.js'

/** What has happened to a limiter in all its threads; each thread adds its decisions every 256, and when it closes. */
export interface Statistics {
  /**
   * Keys that were decided on (refused, too) within the window and a granule, or are blocked. Exact up to 65,536
   * places; in a larger table an estimate from 65,536 of them, evenly spread (within 1 % of the table), so that asking
   * never takes long.
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
  /** Places lost to threads that died while they were taking one (or that are taking one right now). */
  lostWays: number
  /** The size of the shared memory, touched or not. */
  bytes: number
}

const MOST_SETS_READ = 4096

export function readStatistics(arena: Arena, cells: Cells, reading: Reading): Statistics {
  const { words, buffer } = arena
  return {
    keys: countKeys(arena, cells, reading),
    allowed: counted(words, HEADER.ALLOWED),
    denied: counted(words, HEADER.DENIED),
    evicted: counted(words, HEADER.EVICTED),
    evictedLive: counted(words, HEADER.EVICTED_LIVE),
    noRoom: counted(words, HEADER.NO_ROOM),
    lostWays: load(words, HEADER.CLAIMING),
    bytes: buffer.byteLength,
  }
}

function countKeys({ words, shape }: Arena, cells: Cells, reading: Reading): number {
  const setsRead = Math.min(shape.sets, MOST_SETS_READ)
  let keys = 0
  for (let i = 0; i < setsRead; i++) {
    const set = Math.floor((i * shape.sets) / setsRead)
    for (let way = set * WAYS_PER_SET; way < (set + 1) * WAYS_PER_SET; way++) {
      const base = shape.waysAt + way * shape.wayWords
      const v = read(words, base + ADM) // plain: this is a snapshot in any case
      if ((v & STATE) !== LIVE) continue
      if (cells.isShut(base, v, reading.nowMs) || !cells.isExpired(base, read(words, base + TICK), reading))
        keys++
    }
  }
  return Math.round((keys * shape.sets) / setsRead)
}
