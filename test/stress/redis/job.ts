import type { Library } from '../../redis/clients.js'

export const PROCESSES = 4

export interface StressRule {
  readonly limit: number
  readonly windowMs: number
  readonly granules: number
  /** The most that a request costs. */
  readonly mostCost: number
}

export const RULES: readonly StressRule[] = [
  { limit: 1, windowMs: 200, granules: 10, mostCost: 1 },
  { limit: 10, windowMs: 500, granules: 10, mostCost: 3 },
  { limit: 100, windowMs: 1_000, granules: 20, mostCost: 3 },
  { limit: 1_000, windowMs: 2_000, granules: 50, mostCost: 5 },
  { limit: 10_000, windowMs: 5_000, granules: 50, mostCost: 19 },
]
/** Keys of each rule. */
export const KEYS = 2
/** Requested units, as a share of what the limits admit. */
export const LOAD = 1.5

/** The arguments of a process. */
export interface Job {
  readonly port: number
  readonly library: Library
  readonly seed: number
  /** The file of its admissions. */
  readonly file: string
}

/** What a process reports at its end. Before that it reports `'full'`, when each rule has refused something. */
export interface Counts {
  decisions: number
  outages: number
}

export const averageCost = ({ mostCost }: StressRule): number => (1 + mostCost) / 2

/** Milliseconds of a clock that all processes of the machine share. */
export const sharedMs = (): number => Number(process.hrtime.bigint()) / 1e6
