import { type Benchmark, type Contender, type Goal, timesOf } from '../benchmark.js'
import type { HandlerName } from './handlers.js'
import { load } from './load.js'
import { startServer } from './start-server.js'

const WARM_UP_MS = { full: 2_000, quick: 1_000 }
const LOAD_MS = { full: 8_000, quick: 1_500 }

export const http: Benchmark = {
  title:
    'a node:http server: bare, with constant RateLimit headers, with the limiter behind them, inline and by a pool',
  units: {
    requestsPerSecond: 'requests a second',
    p50Ms: 'half of the answers within, ms',
    p99Ms: '99 of 100 answers within, ms',
    cpuUs: "server's processor time a request, of all its threads, microseconds",
  },
  contenders: [serving('bare'), serving('headers only'), serving('limiter'), serving('pool limiter')],
  goals: [
    ...(['limiter', 'pool limiter'] as const).flatMap(besideHeaders),
    {
      what: 'requests a second: headers only / bare',
      unit: 'x',
      value: timesOf('headers only', 'bare', 'requestsPerSecond'),
    },
  ],
}

function besideHeaders(name: HandlerName): Goal[] {
  return [
    {
      what: `requests a second: ${name} / headers only`,
      unit: 'x',
      value: timesOf(name, 'headers only', 'requestsPerSecond'),
    },
    {
      what: `server's processor time: ${name} / headers only`,
      unit: 'x',
      value: timesOf(name, 'headers only', 'cpuUs'),
    },
    {
      what: `99 of 100 answers: ${name} / headers only`,
      unit: 'x',
      value: timesOf(name, 'headers only', 'p99Ms'),
    },
  ]
}

/**
 * The load is made here, in the contender's process, the server has another. The server's processor time is shown too:
 * where who asks is the slower of the two, or the machine is busy, requests a second say little of the server.
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
