import { type Benchmark, type Contender, type Figures, ratioOf } from '../benchmark.js'
import { type Call, LOOP_UNITS, timeInFlight } from '../in-flight.js'
import { LIMIT, WINDOW_MS } from '../peers.js'
import { CLIENTS, type ClientName, withFlexible, withMillrace } from './clients.js'
import { redisMissing, withRedis } from './server.js'

const CALLERS = 256
const KEYS = 1_000
/** Decisions of an effort for each call. */
const OPERATIONS_PER_CALL = 4

const ours = (client: ClientName) => `Millrace, ${client}`
const theirs = (client: ClientName) => `rate-limiter-flexible 11, ${client}`

type WithCall = (port: number, use: (call: Call) => Promise<Figures>) => Promise<Figures>

function calling(name: string, withCall: WithCall): Contender {
  return {
    name,
    measure: ({ operations }) => {
      const count = Math.ceil(operations / OPERATIONS_PER_CALL)
      const loop = { callers: CALLERS, count, keysPerCall: 1 }
      return withRedis(({ port }) => withCall(port, (call) => timeInFlight(loop, call)))
    },
  }
}

function contendersOf(client: ClientName): Contender[] {
  const options = { limit: LIMIT, window: WINDOW_MS, deadline: '10s' } as const
  return [
    calling(ours(client), (port, use) =>
      withMillrace(client, port, options, (limiter) =>
        use(async (i) => {
          const { source } = await limiter.check(`user:${i % KEYS}`)
          if (source !== 'redis') throw new Error(`decided by '${source}'`)
        }),
      ),
    ),
    calling(theirs(client), (port, use) =>
      withFlexible(client, port, { points: LIMIT, duration: WINDOW_MS / 1_000 }, (limiter) =>
        use((i) => limiter.consume(`user:${i % KEYS}`)),
      ),
    ),
  ]
}

export const redisInFlight: Benchmark = {
  title: `decisions of one process, ${CALLERS} calls in flight, ${KEYS.toLocaleString('en')} keys`,
  units: LOOP_UNITS,
  contenders: CLIENTS.flatMap(contendersOf),
  goals: CLIENTS.flatMap((client) => [
    {
      label: `decisions per second: ${ours(client)} / ${theirs(client)}`,
      unit: 'x' as const,
      value: ratioOf(ours(client), theirs(client), 'thousandASecond'),
      atLeast: 1,
    },
    {
      label: `the caller's time per decision: ${ours(client)} / ${theirs(client)}`,
      unit: 'x' as const,
      value: ratioOf(ours(client), theirs(client), 'callerNs'),
    },
  ]),
  unavailable: redisMissing,
}
