import type { LimiterOptions } from 'millrace'

export const LIMIT = 40
/** The limit holds over 210 ms: 20 granules of 10 ms and the current one. */
export const WINDOW_MS = 200
export const GRANULE_MS = 10
export const WIDTH = WINDOW_MS / GRANULE_MS + 1
/** Judged keys. Nearly every other key is new and takes a way. */
export const KEYS = 48
export const OTHER_KEYS = 1_000_000
export const OTHERS_SHARE = 0.02

export const PROCESSES = 4

/** Enough for all keys that count at one time: an evicted key could exceed its limit. */
export function optionsFor(file: string): LimiterOptions {
  return {
    limit: LIMIT,
    window: WINDOW_MS,
    granularity: GRANULE_MS,
    maxKeys: 100_000,
    shared: { file },
  }
}

/** The arguments of a process. */
export interface Job {
  readonly file: string
  readonly log: string
  readonly slot: number
  readonly seed: number
  readonly firstTick: number
  readonly ticks: number
}
