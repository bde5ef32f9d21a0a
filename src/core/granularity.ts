import { type Duration, formatDuration, parseDuration } from './duration.js'
import { invalidRule } from './rule-algorithms.js'

export const MAX_BUCKETS = 2 ** 20
/** Windows of up to this many granules are summed granule by granule. */
export const MOST_LINEAR = 256
const DEFAULT_BUCKETS = 60

/**
 * Returns the number of buckets of a window, `otherwise` without a granularity.
 * @throws MillraceError `ERR_MILLRACE_INVALID_RULE`
 */
export function checkGranularity(
  granularity: Duration | undefined,
  windowMs: number,
  option: string,
  otherwise = DEFAULT_BUCKETS,
): number {
  if (granularity === undefined) return otherwise
  const granuleMs = parseDuration(granularity, option, 'ERR_MILLRACE_INVALID_RULE')
  if (granuleMs > windowMs) {
    throw invalidRule(option, granularity, `at most the window, ${formatDuration(windowMs)}`)
  }
  const parts = windowMs / granuleMs
  const buckets = Math.round(parts)
  if (buckets > MAX_BUCKETS) {
    const least = windowMs / MAX_BUCKETS // not rounded, so that it divides the window
    const handy = granularityFrom(least, windowMs)
    throw invalidRule(
      option,
      granularity,
      `at least ${least} in milliseconds, such as ${handy}: a window has at most ${MAX_BUCKETS} buckets`,
    )
  }
  // A granularity such as 1000 / 3 ms has no exact decimal. An error of 1 in 10^9 is allowed.
  if (Math.abs(parts - buckets) > parts * 1e-9) {
    const nearest = nearestDivisor(granuleMs, windowMs)
    throw invalidRule(
      option,
      granularity,
      `a whole part of the window; in whole milliseconds the nearest is ${nearest}`,
    )
  }
  return buckets
}

/** The finest granularity of at least `granuleMs` that divides the window, as text. */
export function granularityFrom(granuleMs: number, windowMs: number): string {
  return nearestDivisor(granuleMs, windowMs, 1)
}

/** The same in whole hours, minutes or seconds, if one of those is at most 1.5 times as coarse. */
export function roundGranularityFrom(granuleMs: number, windowMs: number): string {
  for (const unitMs of [3_600_000, 60_000, 1_000]) {
    for (let ms = Math.ceil(granuleMs / unitMs) * unitMs; ms <= 1.5 * granuleMs; ms += unitMs) {
      if (windowMs % ms === 0) return formatDuration(ms)
    }
  }
  return granularityFrom(granuleMs, windowMs)
}

/** The duration nearest to `granuleMs` that divides the window, as text. With `direction` 1, not below it. */
function nearestDivisor(granuleMs: number, windowMs: number, direction = 0): string {
  const step = Number.isInteger(windowMs) ? 1 : 0
  for (let off = 0; step && off < windowMs && off < 1e6; off++) {
    const down = Math.floor(granuleMs) - off
    const up = Math.ceil(granuleMs) + off
    const lower = direction === 0 && down >= 1 && windowMs % down === 0 && windowMs / down <= MAX_BUCKETS
    const upper = windowMs % up === 0
    if (lower && (!upper || granuleMs - down <= up - granuleMs)) return formatDuration(down)
    if (upper) return formatDuration(up)
  }
  return `${windowMs / Math.max(1, Math.round(windowMs / granuleMs))}ms`
}
