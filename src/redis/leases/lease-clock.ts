import { monotonicClock } from '../../core/clock.js'

/** So far the wall clock and the monotonic clock may part in the life of a lease: no machine was suspended then. */
const MOST_PARTED_MS = 100

/**
 * The clock of leases. The monotonic clock stands still while a machine is suspended, and the server's goes on. The
 * wall clock goes on, too: if both have parted since the last reading, all leases end.
 */
export class LeaseClock {
  readonly #testTime: (() => number) | undefined
  readonly #parted: () => void
  #apartMs = 0

  /** @param parted is called before the reading is used */
  constructor(testTime: (() => number) | undefined, parted: () => void) {
    this.#testTime = testTime
    this.#parted = parted
    this.adjust()
  }

  now(): number {
    if (this.#testTime !== undefined) return this.#testTime()
    const ms = monotonicClock.now()
    if (Math.abs(Date.now() - ms - this.#apartMs) > MOST_PARTED_MS) {
      this.adjust()
      this.#parted()
    }
    return ms
  }

  /** What parts both clocks slowly, does not add up. */
  adjust(): void {
    this.#apartMs = Date.now() - monotonicClock.now()
  }
}
