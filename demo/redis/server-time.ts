/** An admission by Redis as its caller sees it; all in whole milliseconds, the first two since 1970. */
export interface Seen {
  readonly sentMs: number
  readonly receivedMs: number
  readonly resetMs: number
  readonly granularityMs: number
}

/**
 * When Redis admitted a request, by its own clock, which is also the clock of the caller. The decision's `resetMs` is
 * the time from then until a granule ends, and granules are whole milliseconds: between request and reply there is one
 * such time, unless a granule is as short as the call. Then it is the first: a reply that is late by itself is void.
 * Undefined if there is none: the limiter contradicts the clock.
 */
export function admittedAt({ sentMs, receivedMs, resetMs, granularityMs }: Seen): number | undefined {
  const atMs = sentMs + ((granularityMs - ((sentMs + resetMs) % granularityMs)) % granularityMs)
  return atMs > receivedMs ? undefined : atMs
}
