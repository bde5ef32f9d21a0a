import type { SharedLimiter } from 'millrace'
import type { LogMemory } from '../log.js'
import type { Shape } from './shapes.js'

/** The `workerData` of a thread. */
export interface Job {
  readonly shared: SharedLimiter
  readonly memory: LogMemory
  readonly shape: Shape
  readonly thread: number
  readonly decisions: number
  readonly seed: number
  /** The offset of the run's clock from the machine's. */
  readonly aheadMs: number
  /** One word: 0 until the threads may start. */
  readonly gate: Int32Array<SharedArrayBuffer>
}

/** The counts of a thread. */
export interface Counts {
  decisions: number
  admissions: number
  /** Units admitted and not refunded: the sum of its log entries. */
  units: number
  refusals: number
  /** Refusals without overlapping operations, including peeks. */
  judged: number
  /** Judged refusals that an exact limiter one granule stricter would not have made. */
  early: number
  refunded: number
  peeks: number
  /** Descriptions of the first early refusals. */
  complaints: string[]
}

export function noCounts(): Counts {
  return {
    decisions: 0,
    admissions: 0,
    units: 0,
    refusals: 0,
    judged: 0,
    early: 0,
    refunded: 0,
    peeks: 0,
    complaints: [],
  }
}

export function addCounts(to: Counts, from: Counts): void {
  to.decisions += from.decisions
  to.admissions += from.admissions
  to.units += from.units
  to.refusals += from.refusals
  to.judged += from.judged
  to.early += from.early
  to.refunded += from.refunded
  to.peeks += from.peeks
  to.complaints.push(...from.complaints)
}
