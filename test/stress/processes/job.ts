import type { LimiterOptions } from 'millrace'

export const LIMIT = 40
/** 210 ms that may not be over: 20 granules of 10 ms and the one under way. */
export const WINDOW_MS = 200
export const GRANULE_MS = 10
export const WIDTH = WINDOW_MS / GRANULE_MS + 1
/** Keys that are judged; of the others nearly every one is new, and takes a place. */
export const KEYS = 48
export const OTHER_KEYS = 1_000_000
export const OTHERS_SHARE = 0.02

export const PROCESSES = 4

/** Room for all keys that count at the same time: one displaced while it counts might be over. */
export function optionsFor(file: string): LimiterOptions {
  return {
    limit: LIMIT,
    window: WINDOW_MS,
    granularity: GRANULE_MS,
    maxKeys: 100_000,
    shared: { file },
  }
}

/** What a process is told, by its arguments. */
export interface Job {
  readonly file: string
  readonly log: string
  readonly slot: number
  readonly seed: number
  readonly firstTick: number
  readonly ticks: number
}
