/** An admission by Redis as its caller sees it; all in whole milliseconds, the first two since 1970. */
export interface Seen {
  readonly sentMs: number
  readonly receivedMs: number
  readonly resetMs: number
  readonly granularityMs: number
}

/**
 * When Redis admitted a request, by its own clock, which is also the clock of the caller. The decision's `resetMs` is
 * the time from then until granules end that are whole milliseconds, and between request and reply there is one such
 * time, unless a granule is as short as the call. Undefined if there is none: the limiter contradicts the clock.
 */
export function admittedAt({ sentMs, receivedMs, resetMs, granularityMs }: Seen): number | undefined {
  const atMs = receivedMs - ((receivedMs + resetMs) % granularityMs)
  return atMs < sentMs ? undefined : atMs
}
