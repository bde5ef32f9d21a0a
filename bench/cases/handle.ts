import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, timesOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cached, inOrder, randomOrder } from '../keys.js'
import { millrace, millraceHandles, millraceWithoutAddon } from '../millrace.js'
import { mapFloor } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const course = ({ operations }: Effort) => ({
  keyAt: cached(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** By the addon where it is there, unless told. */
function byHandle(name: string, side?: Side): Contender {
  return {
    name,
    measure(effort) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const { handleAt, decide } = millraceHandles(cached(KEYS), KEYS)
      return timeDecisions({ ...course(effort), keyAt: handleAt }, decide)
    },
  }
}

export const handle: Benchmark = {
  title: `check(handle) over ${KEYS.toLocaleString('en')} hot keys in random order`,
  units: { ns: 'nanoseconds a decision' },
  contenders: [
    byHandle('Millrace by handle'),
    byHandle('Millrace by handle, without the addon', 'TypeScript'),
    direct('Map floor, cached', course, mapFloor),
    direct('Millrace, cached', course, () => millrace(KEYS)),
    direct('Millrace, cached, without the addon', course, () => millraceWithoutAddon(KEYS)),
  ],
  goals: [
    {
      target: 'P2',
      what: 'Millrace by handle / Map floor, cached',
      unit: 'x',
      value: timesOf('Millrace by handle', 'Map floor, cached'),
      atMost: 1,
      stretch: 0.5,
    },
    {
      what: 'Millrace by handle / Millrace, cached',
      unit: 'x',
      value: timesOf('Millrace by handle', 'Millrace, cached'),
    },
    ...['Millrace by handle', 'Millrace, cached'].map((what) => ({
      what: `${what}: without the addon / with it`,
      unit: 'x' as const,
      value: timesOf(`${what}, without the addon`, what),
    })),
  ],
}
