// What the tests of outgoing calls have in common: servers with a log of arrivals, and the judge of that log.
import { createServer, type RequestListener } from 'node:http'
import { listen, shut } from '../http/serve.js'

/** The most arrivals in any window of this length: from one arrival on, its end excluded. */
export function mostInAnyWindow(arrivalsMs: readonly number[], windowMs: number): number {
  const sorted = arrivalsMs.toSorted((a, b) => a - b)
  let most = 0
  for (let first = 0, end = 0; first < sorted.length; first++) {
    while (end < sorted.length && sorted[end]! < sorted[first]! + windowMs) end++
    most = Math.max(most, end - first)
  }
  return most
}

/** Runs a server on a free port while `use` runs. */
export async function withServer(
  listener: RequestListener,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const server = createServer(listener)
  const url = await listen(server)
  try {
    await use(url)
  } finally {
    await shut(server)
  }
}

/** Calls that are to run side by side. */
export const times = <T>(n: number, call: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: n }, (_, i) => call(i)))
