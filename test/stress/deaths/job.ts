import type { SharedLimiter } from 'millrace'
import type { LogMemory } from '../log.js'

/** A window of 20 s with granules of 1 s, on a manual clock that the survivors advance. */
export const WINDOW_MS = 20_000
export const BUCKETS = 20
export const LIMIT = 2_000
/** Judged keys: all threads use the hot ones all the time and the others rarely. */
export const HOT_KEYS = 8
export const KEYS = 64

/**
 * The way in which a thread dies: by `worker.terminate()`; by `process.exit()` from a reading of the clock
 * during an insertion; or by running out of memory while it decides.
 */
export type Manner = 'terminate' | 'exit' | 'memory' | 'survive'

/** The `workerData` of a thread. */
export interface Job {
  readonly shared: SharedLimiter
  readonly memory: LogMemory
  readonly board: SharedArrayBuffer
  readonly thread: number
  readonly manner: Manner
  /** The share of operations on new keys, 0 to 1. */
  readonly newKeys: number
  /** Operations after which a thread with `exit` or `memory` dies. */
  readonly lifetime: number
  readonly seed: number
}
