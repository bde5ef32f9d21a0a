/** The computed end of a tick is made earlier by this part of itself, because the product is rounded. */
export const TICK_END_MARGIN = 2 ** -50
/** The parts of a granule that the smooth edge distinguishes. */
export const SIXTEENTHS = 16

/**
 * Converts a clock's readings to ticks and back. The tick is floor(now * n / W), for a window of W
 * milliseconds in n granules. A word of shared memory holds a tick plus `shift`, modulo `modulus`.
 */
export class Ticks {
  readonly windowMs: number
  readonly buckets: number
  readonly granuleMs: number
  /** Ticks in shared memory wrap at this number (`memory/layout.ts`). */
  readonly modulus: number
  /** Added to each tick in shared memory (`memory/layout.ts`). */
  readonly shift: number
  /** Added to each reading, in milliseconds. */
  readonly offsetMs: number
  /**
   * A granule of whole milliseconds divides exactly. Otherwise multiplying by n first keeps the most bits.
   */
  readonly #isExact: boolean

  constructor(windowMs: number, buckets: number, modulus: number, shift = 0, offsetMs = 0) {
    this.windowMs = windowMs
    this.buckets = buckets
    this.modulus = modulus
    this.shift = shift
    this.offsetMs = offsetMs
    this.granuleMs = windowMs / buckets
    this.#isExact = Number.isInteger(this.granuleMs)
  }

  /** `nowMs` in granules, with a fraction. It never falls as `nowMs` rises. */
  position(nowMs: number): number {
    const ms = nowMs + this.offsetMs
    return this.#isExact ? ms / this.granuleMs : (ms * this.buckets) / this.windowMs
  }

  /** The tick of a reading of the present, not wrapped. */
  enter(nowMs: number): number {
    return Math.floor(this.position(nowMs))
  }

  /** All readings from `nowMs`, which is of this tick, to before the result are of this tick, too. */
  until(tick: number, nowMs: number): number {
    // The end is made a little early, then checked.
    const end = this.startMs(tick + 1)
    // With an offset, `position` rounds a larger number.
    const to = end - (Math.abs(end) + Math.abs(this.offsetMs)) * TICK_END_MARGIN
    return Math.floor(this.position(to)) === tick ? to : nowMs
  }

  /** A tick as shared memory has it: shifted, modulo `modulus`. */
  wrap(tick: number): number {
    const rest = (tick + this.shift) % this.modulus
    return rest < 0 ? rest + this.modulus : rest
  }

  /** The reading at which a tick, not wrapped, begins. */
  startMs(tick: number): number {
    return tick * this.granuleMs - this.offsetMs
  }

  /** The reading at which a tick of shared memory began; `readingMs`, if that is a reading of the tick. */
  startOf(tick: number, readingMs: number): number {
    const own = Math.floor(this.position(readingMs))
    const ahead = ((tick >>> 0) - this.wrap(own) + this.modulus) % this.modulus
    if (ahead === 0) return readingMs
    return this.startMs(own + (ahead > this.modulus / 2 ? ahead - this.modulus : ahead))
  }

  /**
   * The number of whole milliseconds after `nowMs` until the clock reaches `position`, in granules, a
   * multiple of 1/16. Negative if it has passed. Exact: one millisecond less is too early.
   */
  untilPosition(nowMs: number, position: number): number {
    let ms = Math.ceil(this.startMs(position) - nowMs)
    while (this.position(nowMs + ms) < position) ms++
    while (this.position(nowMs + ms - 1) >= position) ms--
    return ms
  }
}
