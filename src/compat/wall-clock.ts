import type { Clock } from '../core/clock.js'

/**
 * The system's time, for the limiters of one drop-in. The packages that the drop-ins replace read `Date.now`,
 * and tests of them turn it.
 *
 * {@link WallClock.read} reads it once for each call of a drop-in. All limiters that serve the call then see
 * the same moment. If `Date.now` steps back, by an hour or by the 50 years to a fake clock that begins at 0,
 * the time of the limiters goes on from where it was, at the pace of `Date.now`. Otherwise they would stand still
 * until it is there again.
 */
export class WallClock implements Clock {
  #dateMs = Date.now()
  /** How far the limiters are ahead of `Date.now`: the sum of its steps back. */
  #aheadMs = 0

  /** Returns `Date.now()`, and moves the clock there. */
  read(): number {
    const dateMs = Date.now()
    if (dateMs < this.#dateMs) this.#aheadMs += this.#dateMs - dateMs
    this.#dateMs = dateMs
    return dateMs
  }

  /** The moment of the last {@link WallClock.read}, which never steps back. */
  now(): number {
    return this.#dateMs + this.#aheadMs
  }
}
