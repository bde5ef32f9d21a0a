/** The traffic of a limiter: its rule, and a population of keys that changes with time. */
export interface Traffic {
  readonly name: string
  readonly windowMs: number
  readonly granularityMs: number
  readonly limit: number
  /** Keys in use at any time. */
  readonly keys: number
  /** The time for which a key is in use; it never returns. */
  readonly lifeMs: number
}

/** The values for a pace of 1. At 2, each key is in use half as long. */
export function trafficsOf(keys: number, pace: number): readonly Traffic[] {
  const traffics = [
    { name: '10 s by 100 ms', windowMs: 10_000, granularityMs: 100, limit: 50, keys, lifeMs: 20_000 },
    { name: '1 s by 10 ms', windowMs: 1_000, granularityMs: 10, limit: 8, keys, lifeMs: 5_000 },
  ]
  return traffics.map((traffic) => ({ ...traffic, lifeMs: traffic.lifeMs / pace }))
}

/** Keys that are in use throughout, with far more requests than their limit. */
export const HOT_KEYS = 64
/** Room beyond the keys that count at one time, so that none of them is evicted. */
const HEADROOM = 1.25

/** Keys in use, and keys that have finished but still count. */
export function maxKeysOf({ keys, lifeMs, windowMs, granularityMs }: Traffic): number {
  const departed = (keys / lifeMs) * (windowMs + granularityMs)
  return Math.ceil(HEADROOM * (keys + departed + HOT_KEYS))
}

/** Passing keys are numbered in order of their first use. */
export class Population {
  readonly #traffic: Traffic
  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  /** The oldest key in use at a time after the start. The `keys - 1` keys after it are in use too. */
  oldest(elapsedMs: number): number {
    const { keys, lifeMs } = this.#traffic
    return Math.floor((elapsedMs / lifeMs) * keys)
  }

  /** The time of a key's first use in milliseconds after the start; 0 for the first ones. */
  cameMs(id: number): number {
    const { keys, lifeMs } = this.#traffic
    return Math.max(0, ((id - keys + 1) / keys) * lifeMs)
  }
}

/** Hot keys are numbered from -1 down, passing ones from 0 up. */
export const anyHotKey = (pick: number): number => -1 - Math.floor(pick * HOT_KEYS)
export const nameOf = (key: number): string => (key < 0 ? `hot ${-key}` : `client ${key}`)
