import type { SharedLimiter } from 'millrace'
import type { LogMemory } from '../log.js'
import type { Shape } from './shapes.js'

/** What a thread is told. */
export interface Job {
  readonly shared: SharedLimiter
  readonly memory: LogMemory
  readonly shape: Shape
  readonly thread: number
  readonly decisions: number
  readonly seed: number
  /** By how much the run's clock is ahead of the machine's. */
  readonly aheadMs: number
  /** One word: 0 until all set out. */
  readonly gate: Int32Array<SharedArrayBuffer>
}

/** What a thread counted. */
export interface Counts {
  decisions: number
  admissions: number
  /** Units admitted and not given back: what its entries in the log come to. */
  units: number
  refusals: number
  /** Refusals that nothing overlapped, peeks among them. */
  judged: number
  /** Of those judged, the ones that an exact limiter one granule stricter would not have made. */
  early: number
  givenBack: number
  peeks: number
  /** What the first few early refusals were. */
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
    givenBack: 0,
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
  to.givenBack += from.givenBack
  to.peeks += from.peeks
  to.complaints.push(...from.complaints)
}
