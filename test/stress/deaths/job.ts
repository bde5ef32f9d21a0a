import type { SharedLimiter } from 'millrace'
import type { LogMemory } from '../log.js'

/** A window of 20 s in granules of one, by a clock that the survivors turn. */
export const WINDOW_MS = 20_000
export const BUCKETS = 20
export const LIMIT = 2_000
/** Keys that are judged: a few that all threads use all the time, the others now and then. */
export const HOT_KEYS = 8
export const KEYS = 64

/**
 * How a thread dies: by `worker.terminate()` from outside; by `process.exit()` in the midst of an insertion, from the
 * clock that it reads there; or by running out of memory while it decides.
 */
export type Manner = 'terminate' | 'exit' | 'memory' | 'survive'

/** What a thread is told. */
export interface Job {
  readonly shared: SharedLimiter
  readonly memory: LogMemory
  readonly board: SharedArrayBuffer
  readonly thread: number
  readonly manner: Manner
  /** How many of its operations meet keys that are new, 0 to 1. */
  readonly newKeys: number
  /** After how many operations a thread that dies by itself does. */
  readonly lifetime: number
  readonly seed: number
}
