import type { Limiter } from '../api/limiter.js'

/** The hits of a key, as the drop-ins answer them. */
export interface Count {
  /** The hits that count, with those that were refused. */
  readonly hits: number
  /** Whether the hit was within the limit. */
  readonly allowed: boolean
  /**
   * Whole milliseconds until hits leave: in a sliding window the oldest one, in a fixed window all. 0 if none
   * counts.
   */
  readonly resetMs: number
}

/** Which hits are taken back first. */
export type TakeOrder = 'refused-first' | 'admitted-first'

/** The counts of all keys in one window. The caller reads the {@link WallClock} before each call. */
export interface Counts {
  /**
   * Counts `cost` more hits of a key.
   * @param key the key of Millrace
   * @param limit the most hits that are admitted. A sliding window keeps the hits beyond it apart, so that they
   * don't hold off the next admission. `Infinity`: all are admitted
   * @param cost how many, an integer of 1 or more. Default: 1
   */
  hit(key: string, limit: number, cost?: number): Count
  /** Returns the hits of a key, or undefined if nothing is known of it. `limit` is that of its hits. */
  read(key: string, limit: number): Count | undefined
  /**
   * Takes up to `cost` hits back. A key that has fewer has 0 then, and is known until its window ends, which begins
   * now if the key has none. `limit` is that of its hits.
   * @param order whether it begins with the hits that were refused, or with those that were admitted. Default:
   * `'refused-first'`
   */
  take(key: string, limit: number, cost: number, order?: TakeOrder): void
  /**
   * Begins the window of a key again: all of its hits count as of this moment. `limit` is that of its hits. Does
   * nothing for an unknown key.
   */
  restart(key: string, limit: number): void
  /** Forgets a key. */
  clear(key: string): void
  /** Forgets all keys. */
  clearAll(): void
  /** The limiters that count. */
  limiters(): readonly Limiter[]
  /** Releases the memory. */
  close(): Promise<void>
}

/** The most hits that a window counts. */
export const MOST_HITS = 4_194_302

/** A limit as Millrace takes it: whole, 0 to {@link MOST_HITS}. What is no number admits all. */
export function wholeLimit(limit: number): number {
  if (Number.isNaN(limit)) return MOST_HITS
  return Math.max(0, Math.min(MOST_HITS, Math.floor(limit)))
}
