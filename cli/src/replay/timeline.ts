import type { Traffic } from './traffic.js'

/** What became of the requests, one span of time after the other. */
export interface Timeline {
  /** Where the first span begins, since 1970: at a multiple of `bucketMs`. */
  firstMs: number
  bucketMs: number
  admitted: number[]
  refused: number[]
}

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000]
/**
 * Spans that people count in. Each divides the hour or the day or is made of whole ones: a log with a beat (a job every
 * hour) would beat against 45 or 90 minutes, and the chart show waves that nobody sent.
 */
const SPANS = [
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR),
  ...[1, 2, 4, 7, 14, 28].map((days) => days * DAY),
]

/** In at most `most` spans (3 or more) of equal length, as short as they may be. `admitted` has 1 for each request let through. */
export function timeline({ atMs }: Traffic, admitted: Uint8Array, most: number): Timeline {
  let [first, last] = [Number.POSITIVE_INFINITY, 0]
  for (const at of atMs) {
    first = Math.min(first, at)
    last = Math.max(last, at)
  }
  if (atMs.length === 0) first = 0
  const count = (span: number) => Math.floor(last / span) - Math.floor(first / span) + 1
  const longest = SPANS.at(-1)!
  const bucketMs =
    // Beyond those, multiples of the longest; the first and the last are in part outside of the log.
    SPANS.find((span) => count(span) <= most) ?? longest * Math.ceil((last - first) / longest / (most - 2))
  const found: Timeline = {
    firstMs: Math.floor(first / bucketMs) * bucketMs,
    bucketMs,
    admitted: new Array(count(bucketMs)).fill(0),
    refused: new Array(count(bucketMs)).fill(0),
  }
  for (const [request, at] of atMs.entries()) {
    const bucket = Math.floor((at - found.firstMs) / bucketMs)
    found[admitted[request] === 1 ? 'admitted' : 'refused'][bucket]!++
  }
  return found
}

/** When a span begins, in UTC: as much of the date and time as tells it from the others. */
export function labelOf({ firstMs, bucketMs, admitted }: Timeline, bucket: number): string {
  const begins = new Date(firstMs + bucket * bucketMs).toISOString()
  const date = begins.slice(0, 10)
  if (bucketMs >= DAY) return date
  const time = begins.slice(11, bucketMs < MINUTE ? 19 : 16)
  const isWithinADay =
    Math.floor(firstMs / DAY) === Math.floor((firstMs + (admitted.length - 1) * bucketMs) / DAY)
  return isWithinADay ? time : `${date.slice(5)} ${time}`
}
