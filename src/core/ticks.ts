/** The smooth edge tells so many parts of a granule apart. */
export const SIXTEENTHS = 16

/**
 * Time in ticks: tick = floor(now n / W), for a window of W milliseconds in n granules. A word of shared memory holds
 * a tick modulo `modulus`; here are the two directions between that and a clock's reading.
 */
export class Ticks {
  readonly windowMs: number
  readonly buckets: number
  readonly granuleMs: number
  /** Ticks in shared memory count modulo this; see `memory/layout.ts`. */
  readonly modulus: number
  /** Dividing by a granule of whole milliseconds is exact; else multiplying by n first keeps the most bits. */
  readonly #isExact: boolean

  constructor(windowMs: number, buckets: number, modulus: number) {
    this.windowMs = windowMs
    this.buckets = buckets
    this.modulus = modulus
    this.granuleMs = windowMs / buckets
    this.#isExact = Number.isInteger(this.granuleMs)
  }

  /** `nowMs` in granules, with its fraction; never falls as `nowMs` rises. */
  position(nowMs: number): number {
    return this.#isExact ? nowMs / this.granuleMs : (nowMs * this.buckets) / this.windowMs
  }

  /** A tick (or any whole number of them) as its word: 0 to modulus - 1. */
  wrap(tick: number): number {
    const rest = tick % this.modulus
    return rest < 0 ? rest + this.modulus : rest
  }

  /**
   * How many whole milliseconds after `nowMs` the clock first stands at or behind `position` (in granules, a multiple
   * of a sixteenth); below 0 where it has passed. Exact: one millisecond less is before it.
   */
  untilPosition(nowMs: number, position: number): number {
    let ms = Math.ceil(position * this.granuleMs - nowMs)
    while (this.position(nowMs + ms) < position) ms++
    while (this.position(nowMs + ms - 1) >= position) ms--
    return ms
  }
}
