import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
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

/** The memory of the only key on a server, after some commands. */
function memoryAfter(source: string, commands: readonly Buffer[]): Promise<{ bytes: number }> {
  return withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    await wire.send('SCRIPT', 'LOAD', source)
    await wire.pipeline(commands)
    const names = (await wire.send('KEYS', '*')) as Reply[]
    if (names.length !== 1) throw new Error(`${names.length} keys`)
    const bytes = Number(await wire.send('MEMORY', 'USAGE', String(names[0])))
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

function peer(name: string, make: () => Scripted): Contender {
  return {
    name,
    measure() {
      const { source, commandOf } = make()
      const command = commandOf(KEY)
      return memoryAfter(source, [command, command])
    },
  }
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
