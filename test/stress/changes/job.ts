import type { SharedLimiter } from 'millrace'
import type { Shape } from './shapes.js'

/** The `workerData` of a thread. */
export interface Job {
  readonly shape: Shape
  readonly thread: number
  readonly threads: number
  /** The memory of a `Board`. */
  readonly board: SharedArrayBuffer
}

/** What the main thread sends to each thread for one round, on a limiter of its own. */
export interface Round {
  readonly index: number
  readonly shared: SharedLimiter
  readonly seed: number
}

/** A call of `update`, by the clock of the limiter. */
export interface Change {
  readonly rule: number
  readonly windowMs: number
  readonly endMs: number
}

/** Numbers for each admission in `RoundLog.admissions`. */
export const FIELDS = 7

/** What each thread sends back. */
export interface RoundLog {
  readonly counts: Counts
  /** For each admission: rule, key, units, fromMs, first, last (see `Admission`), and the window's length. */
  readonly admissions: Float64Array
  readonly changes: readonly Change[]
}

export interface Counts {
  decisions: number
  admissions: number
  refunded: number
  batches: number
  /** Admissions by a window and a limit that the rule never had together. */
  mixed: number
  /** Operations during which a change ended. */
  overlapped: number
}

export const noCounts = (): Counts => ({
  decisions: 0,
  admissions: 0,
  refunded: 0,
  batches: 0,
  mixed: 0,
  overlapped: 0,
})

export function addCounts(to: Counts, from: Counts): void {
  for (const name of Object.keys(from) as (keyof Counts)[]) to[name] += from[name]
}
