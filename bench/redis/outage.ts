import { type Benchmark, type Contender, type Figures, figureOf } from '../benchmark.js'
import { type Calls, callFor, quantile } from './calls.js'
import { CLIENTS, type ClientName, withMillrace } from './clients.js'
import { redisMissing, withRedis } from './server.js'

const RATE = 5_000
const DEADLINE_MS = 50
/** Longer than the deadline, after which the breaker is open. */
const OPENING_MS = 150
/** Decisions of an effort for each millisecond of calls while the breaker is open. */
const OPERATIONS_PER_MS = 100

const OPTIONS = { limit: 100, window: '1m', deadline: DEADLINE_MS } as const
/** Calls before the server stops, for V8 to compile the code. */
const FIRST_CALLS = 5_000
const TOGETHER = 50

function stopped(client: ClientName): Contender {
  return {
    name: client,
    measure: ({ operations }) =>
      withRedis((server) =>
        withMillrace(client, server.port, OPTIONS, async (limiter) => {
          for (let i = 0; i < FIRST_CALLS; i += TOGETHER)
            await Promise.all(Array.from({ length: TOGETHER }, (_, j) => limiter.check(`first:${i + j}`)))
          void server.pause()
          const opening = await callFor(limiter, OPENING_MS, RATE)
          const open = await callFor(limiter, operations / OPERATIONS_PER_MS, RATE)
          return figuresOf(opening, open)
        }),
      ),
  }
}

function figuresOf(opening: Calls, open: Calls): Figures {
  const all = [...opening.latenciesMs, ...open.latenciesMs].toSorted((a, b) => a - b)
  return {
    p50Ms: quantile(all, 0.5),
    p999Ms: quantile(all, 0.999),
    longestMs: all.at(-1)!,
    loopDelayMs: Math.max(opening.loopDelayMs, open.loopDelayMs),
    openP99Ms: quantile(open.latenciesMs, 0.99),
  }
}

export const redisOutage: Benchmark = {
  title: `a stopped server: ${RATE.toLocaleString('en')} calls a second, deadline ${DEADLINE_MS} ms`,
  units: {
    p50Ms: 'median latency, ms',
    p999Ms: '99.9th percentile, ms',
    longestMs: 'longest latency, ms',
    loopDelayMs: "the event loop's longest delay, ms",
    openP99Ms: '99th percentile while the breaker is open, ms',
  },
  contenders: CLIENTS.map(stopped),
  goals: CLIENTS.flatMap((client) => [
    {
      label: `${client}: longest latency less the event loop's longest delay`,
      unit: 'ms' as const,
      value: (round) => figureOf(round, client, 'longestMs') - figureOf(round, client, 'loopDelayMs'),
      atMost: 55,
    },
    {
      label: `${client}: 99th percentile while the breaker is open`,
      unit: 'ms' as const,
      value: (round) => figureOf(round, client, 'openP99Ms'),
      atMost: 0.5,
    },
  ]),
  unavailable: redisMissing,
}
