// The formula of a sliding counter, in whole numbers.
//
// Time is cut into fixed windows of `windowMs`, aligned to 1970. A counter has the units of the current window,
// another one those of the window before, of which the part counts that the sliding window still covers:
//
//   used = previous * (windowMs - elapsedMs) / windowMs + current
//
// A request is admitted if `used`, its own cost included, is at most the limit. The formula supposes that the units of
// the window before were spread evenly over it, so it lets more through than the limit if they were not: nearly twice
// the limit if all of them came at the end of that window.

/** The counters of one rule at one moment. */
export interface Counted {
  readonly windowMs: number
  /** Milliseconds since the current window began: 0 to `windowMs - 1`. */
  readonly elapsedMs: number
  /** Units of the window before. */
  readonly previous: number
  /** Units of the current window. */
  readonly current: number
}

/** The window in which a moment lies: its index since 1970, and how much of it is over. */
export function windowAt(nowMs: number, windowMs: number): { index: number; elapsedMs: number } {
  const index = Math.floor(nowMs / windowMs)
  return { index, elapsedMs: nowMs - index * windowMs }
}

/** `a * b / c`, rounded up: exact for whole numbers up to 2^53. */
function ceilOfProduct(a: number, b: number, c: number): number {
  if (a * b <= Number.MAX_SAFE_INTEGER) return Math.ceil((a * b) / c)
  const product = BigInt(a) * BigInt(b)
  return Number((product + BigInt(c) - 1n) / BigInt(c))
}

/** `a * b / c`, rounded down. */
function floorOfProduct(a: number, b: number, c: number): number {
  if (a * b <= Number.MAX_SAFE_INTEGER) return Math.floor((a * b) / c)
  return Number((BigInt(a) * BigInt(b)) / BigInt(c))
}

/**
 * The units that count, rounded up. So `used + cost <= limit` says for whole numbers what
 * `previous * (windowMs - elapsedMs) + (current + cost) * windowMs <= limit * windowMs` says.
 */
export function usedUnits({ windowMs, elapsedMs, previous, current }: Counted): number {
  return current + ceilOfProduct(previous, windowMs - elapsedMs, windowMs)
}

/** The first whole millisecond from now on at which at most `most` units count, if nothing is charged meanwhile. */
export function untilAtMost(most: number, counted: Counted): number {
  const { windowMs, elapsedMs, previous, current } = counted
  if (usedUnits(counted) <= most) return 0
  if (most < 0) return Number.POSITIVE_INFINITY
  const leftMs = windowMs - elapsedMs
  if (current <= most) return leftMs - floorOfProduct(most - current, windowMs, previous)
  return leftMs + windowMs - floorOfProduct(most, windowMs, current)
}
