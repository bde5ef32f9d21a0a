import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
import { expressStore, UpstashCommands } from './package-scripts.js'
import { CountingCommands, flexible, gcra, MillraceCommands, type Scripted } from './scripts.js'
import { redisMissing, withRedis } from './server.js'
import { type Reply, Wire } from './wire.js'

const LOAD = { limit: 100, windowMs: 60_000, granules: 60 }
const KEY = 'user:1234'
const GOALS = [
  { units: 1, atMost: 120 },
  { units: 10, atMost: 170 },
  { units: 60, atMost: 480 },
]

const nameOf = (units: number) => `Millrace, ${units} units`

/**
 * The memory of all keys on a server, after some commands.
 * @throws Error if there are not as many keys as the limiter has for one caller
 */
function memoryAfter(source: string, commands: readonly Buffer[], keys = 1): Promise<{ bytes: number }> {
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    await wire.send('SCRIPT', 'LOAD', source)
    await wire.pipeline(commands)
    const names = (await wire.send('KEYS', '*')) as Reply[]
    if (names.length !== keys) throw new Error(`${names.length} keys`)
    let bytes = 0
    for (const name of names) bytes += Number(await wire.send('MEMORY', 'USAGE', String(name)))
    wire.close()
    return { bytes }
  })
}

/** Its units are in as many granules: the newest now, each of the others a second before the next. */
function millrace(
  units: number,
  name = nameOf(units),
  make = (): MillraceCommands | CountingCommands => new MillraceCommands(LOAD),
): Contender {
  return {
    name,
    measure() {
      const commands = make()
      const older = Array.from({ length: units - 1 }, (_, i) =>
        commands.chargeBefore(KEY, 1_000 * (units - 1 - i)),
      )
      return memoryAfter(commands.source, [...older, commands.commandOf(KEY)])
    },
  }
}

function peer(name: string, make: () => Scripted | Promise<Scripted>): Contender {
  return {
    name,
    async measure() {
      const scripted = await make()
      const command = scripted.commandOf(KEY)
      return memoryAfter(scripted.source, [command, command])
    },
  }
}

/** It has a key for each window: the current one and the previous one count. */
const upstash: Contender = {
  name: '@upstash/ratelimit 2, both keys',
  async measure() {
    const commands = await UpstashCommands.create(LOAD)
    const previous = commands.chargeBefore(KEY, LOAD.windowMs)
    return memoryAfter(commands.source, [previous, commands.commandOf(KEY)], 2)
  },
}

export const redisMemory: Benchmark = {
  title: `MEMORY USAGE of a key, units in as many of 60 granules; the key is ${KEY}`,
  units: { bytes: 'bytes of the server' },
  contenders: [
    ...GOALS.map(({ units }) => millrace(units)),
    ...GOALS.map(({ units }) =>
      millrace(units, `Sliding log, ${units} units`, () => new CountingCommands('sliding-log', LOAD)),
    ),
    millrace(60, 'Sliding counter', () => new CountingCommands('sliding-counter', LOAD)),
    peer('GCRA', () => gcra(LOAD)),
    peer('rate-limiter-flexible 11', () => flexible(LOAD)),
    peer('rate-limit-redis 6', () => expressStore(LOAD)),
    upstash,
  ],
  goals: GOALS.map(({ units, atMost }) => ({
    label: `${units} units`,
    unit: 'bytes',
    value: (round) => figureOf(round, nameOf(units), 'bytes'),
    atMost,
  })),
  rounds: { full: 1, quick: 1 }, // the allocator gives the same sizes each time
  unavailable: redisMissing,
}
