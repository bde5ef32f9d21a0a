import { Redis } from 'ioredis'
import { createRedisLimiter } from 'millrace/redis'
import { type Benchmark, type Contender, type Figures, ratioOf } from '../benchmark.js'
import { redisMissing, withRedis } from './server.js'

const LIMIT = 200
const REQUESTS = 2 * LIMIT
const KEY = 'user:1234'

/** One client: decides a request, and counts the times that it has begun anew. */
interface Client {
  decide(): Promise<boolean>
  retries(): Promise<number>
  close(): Promise<void>
}

const nameOf = (optimistic: boolean, clients: number) =>
  `${optimistic ? 'Millrace, optimistic' : 'Millrace'}, ${clients} clients`
const BY_HAND = 'GET, then INCR, 64 clients'

async function limiterOn(port: number, optimistic: boolean): Promise<Client> {
  const client = new Redis(port, '127.0.0.1')
  const rule = { limit: LIMIT, window: '1h', algorithm: 'sliding-log' } as const
  const limiter = createRedisLimiter({ client, prefix: 'bench', ...rule, optimistic, deadline: '1m' })
  await limiter.peek('other') // so it has its connections
  return {
    async decide() {
      const { allowed, source } = await limiter.check(KEY)
      if (source !== 'redis') throw new Error(`decided by '${source}'`)
      return allowed
    },
    retries: async () => (await limiter.stats()).retries,
    async close() {
      await limiter.close()
      client.disconnect()
    },
  }
}

/** What is often built: it reads, and counts if there is room. */
async function byHandOn(port: number): Promise<Client> {
  const client = new Redis(port, '127.0.0.1')
  await client.ping()
  return {
    async decide() {
      if (Number(await client.get(KEY)) >= LIMIT) return false
      await client.incr(KEY)
      return true
    },
    retries: async () => 0,
    close: async () => client.disconnect(),
  }
}

/** Clients that each make one request after the other, until there were enough. */
function contender(name: string, clients: number, connect: (port: number) => Promise<Client>): Contender {
  return {
    name,
    measure: () =>
      withRedis(async ({ port }): Promise<Figures> => {
        const all = await Promise.all(Array.from({ length: clients }, () => connect(port)))
        let begun = 0
        let admitted = 0
        const startMs = performance.now()
        const run = async (client: Client) => {
          while (begun++ < REQUESTS) if (await client.decide()) admitted++
        }
        await Promise.all(all.map(run))
        const seconds = (performance.now() - startMs) / 1_000
        const retries = await Promise.all(all.map((client) => client.retries()))
        await Promise.all(all.map((client) => client.close()))
        const tries = 1 + retries.reduce((sum, own) => sum + own, 0) / REQUESTS
        return { aSecond: REQUESTS / seconds, tries, admitted }
      }),
  }
}

const millrace = (optimistic: boolean, clients: number): Contender =>
  contender(nameOf(optimistic, clients), clients, (port) => limiterOn(port, optimistic))

export const redisOneKey: Benchmark = {
  title: `${REQUESTS} requests for one key, ${LIMIT} an hour, by clients in one process that each wait for their reply`,
  units: {
    aSecond: 'decisions per second of all clients',
    tries: 'attempts per decision',
    admitted: `admitted requests of ${LIMIT}`,
  },
  contenders: [
    millrace(false, 64),
    millrace(true, 1),
    millrace(true, 8),
    millrace(true, 64),
    contender(BY_HAND, 64, byHandOn),
  ],
  goals: [
    {
      label: `decisions per second: ${nameOf(false, 64)} / ${nameOf(true, 64)}`,
      unit: 'x',
      value: ratioOf(nameOf(false, 64), nameOf(true, 64), 'aSecond'),
    },
    {
      label: `admitted: ${BY_HAND} / ${nameOf(false, 64)}`,
      unit: 'x',
      value: ratioOf(BY_HAND, nameOf(false, 64), 'admitted'),
    },
  ],
  unavailable: redisMissing,
}
