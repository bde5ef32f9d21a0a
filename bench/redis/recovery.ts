import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisLimiter } from 'millrace/redis'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
import { CLIENTS, type ClientName, withMillrace } from './clients.js'
import { type RedisServer, redisMissing, withRedis } from './server.js'

/** Pauses between calls. */
const EVERY_MS = 2
/** Decisions of an effort for each millisecond of the outage. In full, pauses between attempts are at their longest. */
const OPERATIONS_PER_MS = 80

interface OutageKind {
  readonly name: string
  begin(server: RedisServer): unknown
  /** Resolves when the server accepts connections. */
  end(server: RedisServer): unknown
}

const KINDS: readonly OutageKind[] = [
  { name: 'SIGSTOP and SIGCONT', begin: (server) => server.pause(), end: (server) => server.resume() },
  { name: 'killed and started', begin: (server) => server.kill(), end: (server) => server.restart() },
]

const nameOf = (client: ClientName, { name }: OutageKind) => `${client}, ${name}`

function recovering(client: ClientName, kind: OutageKind): Contender {
  return {
    name: nameOf(client, kind),
    measure: ({ operations }) =>
      withRedis((server) =>
        withMillrace(client, server.port, { limit: 1_000_000, window: '1m' }, async (limiter) => {
          await kind.begin(server)
          const endMs = performance.now() + operations / OPERATIONS_PER_MS
          while (performance.now() < endMs) await decide(limiter)
          await kind.end(server)
          const startMs = performance.now()
          while ((await decide(limiter)) !== 'redis');
          return { ms: performance.now() - startMs }
        }),
      ),
  }
}

async function decide(limiter: RedisLimiter): Promise<string | undefined> {
  await sleep(EVERY_MS)
  return (await limiter.check('somebody')).source
}

const ALL = CLIENTS.flatMap((client) => KINDS.map((kind) => ({ client, kind })))

export const redisRecovery: Benchmark = {
  title: 'after an outage, until Redis decides again',
  units: { ms: 'milliseconds' },
  contenders: ALL.map(({ client, kind }) => recovering(client, kind)),
  goals: ALL.map(({ client, kind }) => ({
    label: nameOf(client, kind),
    unit: 'ms',
    value: (round) => figureOf(round, nameOf(client, kind), 'ms'),
    atMost: 1_500,
  })),
  unavailable: redisMissing,
}
