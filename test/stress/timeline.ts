import type { Clock, Limiter } from 'millrace'
import { Ticks } from '#millrace/core/ticks.js'
import { shapeFor, sumsFor } from '#millrace/memory/layout.js'

/** Ticks that pass before the count of them wraps: early in every run it does. */
const BEFORE_WRAP = 1_000

/**
 * A clock that counts its ticks from the first one of a run, and remembers its last reading: that by which the limiter
 * has just decided. It starts shortly before ticks come round to 0 in shared memory.
 */
export class Timeline implements Clock {
  readonly buckets: number
  readonly granuleMs: number
  lastMs = 0
  readonly #source: Clock
  readonly #ticks: Ticks
  readonly #first: number

  /** When a run on such a window is to start, in milliseconds. */
  static startMs(windowMs: number, buckets: number): number {
    return ((shapeFor(windowMs, buckets, 2, sumsFor(buckets)).modulus - BEFORE_WRAP) * windowMs) / buckets
  }

  /** `source` stands at `startMs` when the run starts. */
  constructor(source: Clock, windowMs: number, buckets: number) {
    this.buckets = buckets
    this.granuleMs = windowMs / buckets
    this.#source = source
    const { modulus } = shapeFor(windowMs, buckets, 2, sumsFor(buckets))
    this.#ticks = new Ticks(windowMs, buckets, modulus)
    this.#first = Math.floor(this.#ticks.position(Timeline.startMs(windowMs, buckets)))
  }

  now(): number {
    this.lastMs = this.#source.now()
    return this.lastMs
  }

  /** The tick of the last reading. */
  get tick(): number {
    return Math.floor(this.#ticks.position(this.lastMs)) - this.#first
  }

  /** The tick that a word of shared memory means. */
  ofWord(word: number): number {
    const since = (word >>> 0) - this.#first
    return since < -this.#ticks.modulus / 2 ? since + this.#ticks.modulus : since
  }
}

/** How many ticks no window may be over the limit in: all that a strict window reaches into; a granule less if smooth. */
export function widthOf({ windowMs, granularityMs, edge }: Limiter['rule']): number {
  return Math.round(windowMs / granularityMs) + (edge === 'strict' ? 1 : 0)
}
