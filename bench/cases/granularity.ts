import { createLimiter, type Duration } from 'millrace'
import { replay } from 'millrace-cli/dist/replay/replay.js'
import type { Benchmark, Contender, Effort, Figures } from '../benchmark.js'
import { LARGE_UNITS, largeWindow } from '../large-windows.js'
import { random } from '../random.js'

const WINDOWS: readonly (readonly [name: string, window: Duration, windowMs: number])[] = [
  ['a minute', '1m', 60_000],
  ['an hour', '1h', 3_600_000],
  ['a day', '1d', 86_400_000],
]
const GRANULARITIES = ['1s', '10s', '1m', '1 %'] as const
const FIGURES = ['admission'] as const

/** Each client sends twice its limit per window, at random moments, for this many windows. */
const CLIENTS = 50
const LIMIT = 100
const LOADED_WINDOWS = 4

/** Requests per thousand that were refused although an exact log of the admissions had room for them. */
function earlyPerMille(window: Duration, granularity: Duration, windowMs: number): number {
  const next = random(0x9e3779b9)
  const requests = CLIENTS * LOADED_WINDOWS * 2 * LIMIT
  const traffic = {
    clients: Array.from({ length: CLIENTS }, (_, i) => `client ${i}`),
    client: Array.from({ length: requests }, () => Math.floor(next() * CLIENTS)),
    atMs: Array.from({ length: requests }, () => Math.floor(next() * LOADED_WINDOWS * windowMs)),
  }
  const { wronglyRefused } = replay(traffic, [{ limit: LIMIT, window, granularity }], () => {})
  return (1000 * wronglyRefused) / requests
}

function bytesPerKey(window: Duration, granularity: Duration): number {
  const keys = 1_000
  return createLimiter({ limit: LIMIT, window, granularity, maxKeys: keys }).stats().bytes / keys
}

function contender(name: string, window: Duration, granularity: Duration, windowMs: number): Contender {
  const timed = largeWindow(name, { window, granularity }, FIGURES)
  const measure = async (effort: Effort): Promise<Figures> => ({
    bytes: bytesPerKey(window, granularity),
    ...(await timed.measure(effort)),
    early: earlyPerMille(window, granularity, windowMs),
  })
  return { name, measure }
}

export const granularity: Benchmark = {
  title: 'memory, speed and exactness of each granularity',
  units: {
    bytes: 'bytes per key',
    admission: LARGE_UNITS.admission,
    early: 'early refusals per thousand requests, of clients that send twice their limit',
  },
  contenders: WINDOWS.flatMap(([name, window, windowMs]) =>
    GRANULARITIES.map((granularity) => {
      const fine: Duration = granularity === '1 %' ? windowMs / 100 : granularity
      return contender(`${name} in ${granularity} buckets`, window, fine, windowMs)
    }),
  ),
  goals: [],
}
