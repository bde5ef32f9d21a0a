import { type Clock, checkReading } from './clock.js'
import { MillraceError } from './errors.js'
import { SIXTEENTHS, type Ticks } from './ticks.js'

/**
 * A thread's last reading of the clock, and its tick. Most readings are in the same tick as the one before.
 * So `take` keeps the bounds of the last tick, and compares twice instead of dividing.
 */
export class Reading {
  readonly clock: Clock
  ticks: Ticks
  /** The reading in milliseconds. */
  nowMs = 0
  /** The reading's tick as a word of shared memory: wrapped, as a signed integer. */
  tick = 0
  /** The tick of the reading, not wrapped. */
  absoluteTick = 0
  #from = 1
  #to = 0

  constructor(clock: Clock, ticks: Ticks) {
    this.clock = clock
    this.ticks = ticks
  }

  /** Goes on with other ticks: another record holds. The tick of the present reading follows. */
  use(ticks: Ticks): void {
    this.ticks = ticks
    this.#from = 1
    this.#to = 0
    this.#enterTick(this.nowMs)
  }

  /** Reads the clock and sets `nowMs` and `tick`. @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` */
  take(): void {
    this.set(this.clock.now())
  }

  /** Sets `nowMs` and `tick` to a reading that another rule has taken. @throws as {@link take} */
  set(now: number): void {
    if (!(typeof now === 'number' && now >= this.#from && now < this.#to)) this.#enterTick(now)
    this.nowMs = now
  }

  /** The number of whole sixteenths of the granule that have passed: 0 to 15. */
  get sixteenth(): number {
    return Math.floor(this.ticks.position(this.nowMs) * SIXTEENTHS) & (SIXTEENTHS - 1)
  }

  #enterTick(now: number): void {
    checkReading(now)
    const { ticks } = this
    const tick = ticks.enter(now)
    if (!Number.isSafeInteger(SIXTEENTHS * tick) || Math.abs(now) > Number.MAX_SAFE_INTEGER) {
      const expected = `milliseconds small enough to distinguish times ${ticks.granuleMs} ms apart`
      throw new MillraceError('ERR_MILLRACE_INVALID_CLOCK', 'clock.now()', now, expected)
    }
    // All times between two readings of one tick have that tick.
    this.#from = now
    this.#to = ticks.until(tick, now)
    this.absoluteTick = tick
    this.tick = ticks.wrap(tick) | 0
  }
}
