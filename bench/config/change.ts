import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
import { redisMissing } from '../redis/server.js'
import { type Kind, openStore, withPlace } from './places.js'

const CHANGES = { quick: 10, full: 50 }
const SLOWEST = { quick: 3, full: 10 }
/** Changes before those that are timed: the first ones connect, and compile code. */
const WARM_UP = 3
const PROCESS = fileURLToPath(new URL('./change-process.js', import.meta.url))

const NAMES: Readonly<Record<Kind, string>> = {
  file: 'file',
  lmdb: 'LMDB',
  redis: 'Redis',
  'mongodb, replica set': 'MongoDB, change stream (a stand-in)',
  'mongodb, standalone': 'MongoDB, polled (a stand-in)',
  dynamodb: 'DynamoDB (dynalite), by a TTL of 1 s',
}

/** A put in this process, until a limiter of another process decides by the new limit. */
function changing(kind: Kind): Contender {
  return {
    name: NAMES[kind],
    measure: ({ quick }) =>
      withPlace(kind, async (place) => {
        const store = openStore(place)
        const child = fork(PROCESS, [JSON.stringify(place)])
        const [first] = (await once(child, 'message')) as [{ limit: number }]
        if (first.limit !== 1) throw new Error(`another limit at first: ${first.limit}`)
        const delays: number[] = []
        const changes = (kind === 'dynamodb' ? SLOWEST : CHANGES)[quick ? 'quick' : 'full']
        for (let i = -WARM_UP; i < changes; i++) {
          const seen = once(child, 'message') as Promise<[{ limit: number; at: string }]>
          const start = process.hrtime.bigint()
          await store.put('user:1', { limit: 10 + i, window: '1m' })
          const [{ limit, at }] = await seen
          if (limit !== 10 + i) throw new Error(`limit ${limit}`)
          if (i >= 0) delays.push(Number(BigInt(at) - start) / 1e6)
          await new Promise((resolve) => setTimeout(resolve, 7 * ((i + WARM_UP) % 11))) // at any moment of a poll
        }
        const exited = once(child, 'exit')
        child.disconnect()
        await exited
        await store.close()
        delays.sort((a, b) => a - b)
        return { ms: delays[Math.floor(delays.length / 2)]!, longest: delays.at(-1)! }
      }),
  }
}

const bounded: readonly Kind[] = ['file', 'lmdb', 'redis', 'mongodb, replica set', 'mongodb, standalone']

export const configChange: Benchmark = {
  title: 'a change of a policy, from the call of put until a limiter of another process goes by it',
  units: { ms: 'milliseconds, the median', longest: 'milliseconds, the longest' },
  contenders: (Object.keys(NAMES) as Kind[]).map(changing),
  goals: bounded.map((kind) => ({
    label: `${NAMES[kind]}: the longest`,
    unit: 'ms' as const,
    value: (round) => figureOf(round, NAMES[kind], 'longest'),
    atMost: 100,
  })),
  unavailable: redisMissing,
}
