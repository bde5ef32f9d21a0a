import { type Benchmark, type Contender, type Goal, ratioOf } from '../benchmark.js'
import type { HandlerName } from './handlers.js'
import { load } from './load.js'
import { startServer } from './start-server.js'

const WARM_UP_MS = { full: 2_000, quick: 1_000 }
const LOAD_MS = { full: 8_000, quick: 1_500 }

export const http: Benchmark = {
  title:
    'a node:http server: bare, with constant RateLimit headers, with Millrace by one rule, by two, and pooled',
  units: {
    requestsPerSecond: 'requests per second',
    p50Ms: 'median latency, ms',
    p99Ms: '99th percentile of the latency, ms',
    cpuUs: "the server's processor time per request, all threads, microseconds",
  },
  contenders: [
    serving('bare'),
    serving('headers only'),
    serving('limiter'),
    serving('two rules'),
    serving('pool limiter'),
  ],
  goals: [
    ...(['limiter', 'two rules', 'pool limiter'] as const).flatMap(goalsAgainstHeaders),
    {
      label: 'requests per second: headers only / bare',
      unit: 'x',
      value: ratioOf('headers only', 'bare', 'requestsPerSecond'),
    },
  ],
}

function goalsAgainstHeaders(name: HandlerName): Goal[] {
  return [
    {
      label: `requests per second: ${name} / headers only`,
      unit: 'x',
      value: ratioOf(name, 'headers only', 'requestsPerSecond'),
    },
    {
      label: `the server's processor time: ${name} / headers only`,
      unit: 'x',
      value: ratioOf(name, 'headers only', 'cpuUs'),
    },
    {
      label: `99th percentile of the latency: ${name} / headers only`,
      unit: 'x',
      value: ratioOf(name, 'headers only', 'p99Ms'),
    },
  ]
}

/**
 * Generates the load in the contender's process; the server has its own. The figures include the server's
 * processor time, because requests per second say little about the server if the client is slower or the
 * machine is busy.
 */
function serving(name: HandlerName): Contender {
  return {
    name,
    async measure({ quick }) {
      const server = await startServer(name)
      const effort = quick ? 'quick' : 'full'
      await load(server.port, WARM_UP_MS[effort])
      const cpuBeforeUs = await server.cpuUs()
      const { requests, requestsPerSecond, p50Ms, p99Ms } = await load(server.port, LOAD_MS[effort])
      const cpuUs = ((await server.cpuUs()) - cpuBeforeUs) / requests
      await server.stop()
      return { requestsPerSecond, p50Ms, p99Ms, cpuUs }
    },
  }
}
