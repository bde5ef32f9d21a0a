import { type Clock, MOST_APART_MS, monotonicClock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import { type Addon, addonFor } from './addon.js'

/** Whether a limiter of this thread may have read the default clock, which then keeps its source. */
let isInUse = false
/** The addon that the default clock was compared with. */
let compared: Addon | undefined

/**
 * Returns the default clock, once its source is chosen. Each thread compares it with the clock of the addon when it has
 * loaded the addon. If they differ, the addon's clock becomes the source.
 * @throws MillraceError `ERR_MILLRACE_CLOCKS_DIFFER` if they differ, but limiters of this thread have used
 * the other source already; as {@link addonFor}
 */
export function defaultClock(): Clock {
  const addon = addonFor()
  if (addon?.monotonicMs !== undefined && addon !== compared) {
    const apartMs = apartFrom(addon.monotonicMs)
    if (apartMs > MOST_APART_MS) {
      if (isInUse) throw differError(apartMs)
      monotonicClock.now = addon.monotonicMs
    }
    compared = addon
  }
  isInUse = true
  return monotonicClock
}

/** Whether `clock` is the default clock, and the addon reads the same one. */
export function readsDefaultClock(addon: Addon, clock: Clock): boolean {
  return clock === monotonicClock && addon === compared
}

/** How far the default clock is from another clock: 0 if a reading of that is between two of its own. */
function apartFrom(otherMs: () => number): number {
  const beforeMs = monotonicClock.now()
  const ms = otherMs()
  return Math.max(0, beforeMs - ms, ms - monotonicClock.now())
}

function differError(apartMs: number): MillraceError {
  const expected =
    'the clock of the addon, which other threads and processes use; ' +
    'limiters of this thread without the addon have used another one (MILLRACE_NATIVE was 0)'
  return new MillraceError('ERR_MILLRACE_CLOCKS_DIFFER', 'clock', `a clock ${apartMs} ms apart`, expected)
}
