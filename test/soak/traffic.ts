/** What one limiter of the soak is asked: its rule, and a population of keys that slides by the clock. */
export interface Traffic {
  readonly name: string
  readonly windowMs: number
  readonly granularityMs: number
  readonly limit: number
  /** Keys in use at any moment. */
  readonly keys: number
  /** How long each of them is in use, before it leaves for ever. */
  readonly lifeMs: number
}

/** At a pace of 1; at 2 each key stays half as long. */
export function trafficsOf(keys: number, pace: number): readonly Traffic[] {
  const traffics = [
    { name: '10 s by 100 ms', windowMs: 10_000, granularityMs: 100, limit: 50, keys, lifeMs: 20_000 },
    { name: '1 s by 10 ms', windowMs: 1_000, granularityMs: 10, limit: 8, keys, lifeMs: 5_000 },
  ]
  return traffics.map((traffic) => ({ ...traffic, lifeMs: traffic.lifeMs / pace }))
}

/** Keys that stay throughout, each asked far more often than it may. */
export const HOT_KEYS = 64
/** Room beyond the keys that can be alive at once, so that none that still counts is ever displaced. */
const HEADROOM = 1.25

/** Those in use, and those that left but still count. */
export function maxKeysOf({ keys, lifeMs, windowMs, granularityMs }: Traffic): number {
  const departed = (keys / lifeMs) * (windowMs + granularityMs)
  return Math.ceil(HEADROOM * (keys + departed + HOT_KEYS))
}

/** Passing keys are numbered in the order in which they come. */
export class Population {
  readonly #traffic: Traffic
  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  /** The oldest key in use so long after the start; those in use are it and the `keys - 1` after it. */
  oldest(elapsedMs: number): number {
    const { keys, lifeMs } = this.#traffic
    return Math.floor((elapsedMs / lifeMs) * keys)
  }

  /** When a key came, in milliseconds after the start. The first ones are there from the start. */
  cameMs(id: number): number {
    const { keys, lifeMs } = this.#traffic
    return Math.max(0, ((id - keys + 1) / keys) * lifeMs)
  }
}

/** Hot keys are numbered from -1 down, passing ones from 0 up. */
export const anyHotKey = (pick: number): number => -1 - Math.floor(pick * HOT_KEYS)
export const nameOf = (key: number): string => (key < 0 ? `hot ${-key}` : `client ${key}`)
