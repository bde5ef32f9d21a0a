import type { Decision } from '../core/decision.js'

/**
 * A web request on its way through the limiters of a chain. A caller may send one `Request` object again: that
 * is another flight, with a charge, headers and a decision of its own.
 */
export interface Flight {
  readonly request: Request
  /** The limiters that the request is in, one inside the other. */
  depth: number
  /** The headers for its response that the limiters have set. */
  readonly headers: Map<string, string>
  /** The last decision about it. */
  decision?: Decision
}

const flights = new WeakMap<Request, Flight>()

/** The flight of a request. It begins if there is none. */
export function flightOf(request: Request): Flight {
  const known = flights.get(request)
  if (known !== undefined) return known
  const flight: Flight = { request, depth: 0, headers: new Map() }
  flights.set(request, flight)
  return flight
}

/** Runs what a limiter does with a flight. It ends with the outermost limiter. */
export async function inFlight<T>(flight: Flight, run: () => Promise<T>): Promise<T> {
  flight.depth++
  try {
    return await run()
  } finally {
    if (--flight.depth === 0) flights.delete(flight.request)
  }
}
