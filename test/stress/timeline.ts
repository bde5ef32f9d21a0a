import type { Clock, Limiter } from 'millrace'
import { Ticks } from '#millrace/core/ticks.js'
import { shapeFor, sumsFor } from '#millrace/memory/layout.js'

/** Ticks from the start of a run until the tick number wraps. */
const BEFORE_WRAP = 1_000

/**
 * A clock that numbers ticks from the start of a run and keeps its last reading, by which the limiter has
 * just decided. It starts shortly before tick numbers wrap to 0 in shared memory.
 */
export class Timeline implements Clock {
  readonly buckets: number
  readonly granuleMs: number
  lastMs = 0
  readonly #source: Clock
  readonly #ticks: Ticks
  readonly #first: number

  /** The start time of a run with this window, in milliseconds. */
  static startMs(windowMs: number, buckets: number): number {
    return ((shapeFor(windowMs, buckets, 2, sumsFor(buckets)).modulus - BEFORE_WRAP) * windowMs) / buckets
  }

  /** `source` must be at `startMs` when the run starts. */
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

  /** The run's tick for a tick word of shared memory. */
  ofWord(word: number): number {
    const since = (word >>> 0) - this.#first
    return since < -this.#ticks.modulus / 2 ? since + this.#ticks.modulus : since
  }
}

/**
 * The ticks over which the limit must hold: all ticks that a strict window touches; one less with the smooth
 * edge.
 */
export function widthOf({ windowMs, granularityMs, edge }: Limiter['rule']): number {
  return Math.round(windowMs / granularityMs) + (edge === 'strict' ? 1 : 0)
}
