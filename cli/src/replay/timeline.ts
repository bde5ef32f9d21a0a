import type { Traffic } from './traffic.js'

/** Admitted and refused requests per span of time. */
export interface Timeline {
  /** Start of the first span in milliseconds since 1970: a multiple of `bucketMs`. */
  firstMs: number
  bucketMs: number
  admitted: number[]
  refused: number[]
}

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000]
/**
 * The possible lengths of a span. Each divides an hour or a day, or is a multiple of one. With 45 or 90
 * minutes, hourly jobs would fall into uneven numbers of spans, and the chart would show waves that are not
 * in the traffic.
 */
const SPANS = [
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR),
  ...[1, 2, 4, 7, 14, 28].map((days) => days * DAY),
]

/**
 * Counts requests in at most `most` (at least 3) spans of the shortest possible length. `admitted` has 1 per
 * admission.
 */
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
    // For longer logs, a multiple of the longest span; the first and the last span may be partly outside the
    // log.
    SPANS.find((span) => count(span) <= most) ?? longest * Math.ceil((last - first) / longest / (most - 2))
  const result: Timeline = {
    firstMs: Math.floor(first / bucketMs) * bucketMs,
    bucketMs,
    admitted: new Array(count(bucketMs)).fill(0),
    refused: new Array(count(bucketMs)).fill(0),
  }
  for (const [request, at] of atMs.entries()) {
    const bucket = Math.floor((at - result.firstMs) / bucketMs)
    result[admitted[request] === 1 ? 'admitted' : 'refused'][bucket]!++
  }
  return result
}

/** The start of a span in UTC, with the parts of date and time that differ between spans. */
export function labelOf({ firstMs, bucketMs, admitted }: Timeline, bucket: number): string {
  const begins = new Date(firstMs + bucket * bucketMs).toISOString()
  const date = begins.slice(0, 10)
  if (bucketMs >= DAY) return date
  const time = begins.slice(11, bucketMs < MINUTE ? 19 : 16)
  const isWithinADay =
    Math.floor(firstMs / DAY) === Math.floor((firstMs + (admitted.length - 1) * bucketMs) / DAY)
  return isWithinADay ? time : `${date.slice(5)} ${time}`
}
