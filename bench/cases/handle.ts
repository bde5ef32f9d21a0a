import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, ratioOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { millrace, millraceHandles, millraceWithoutAddon } from '../millrace.js'
import { bareMap } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const workload = ({ operations }: Effort) => ({
  keyAt: cachedKeys(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Decides by handles, in C++ if the addon is built, or as `side` says. */
function byHandle(name: string, side?: Side): Contender {
  return {
    name,
    measure(effort) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const { handleAt, decide } = millraceHandles(cachedKeys(KEYS), KEYS)
      return timeDecisions({ ...workload(effort), keyAt: handleAt }, decide)
    },
  }
}

export const handle: Benchmark = {
  title: `check(handle) over ${KEYS.toLocaleString('en')} hot keys in random order`,
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    byHandle('Millrace by handle'),
    byHandle('Millrace by handle, without the addon', 'TypeScript'),
    direct('bare Map, cached strings', workload, bareMap),
    direct('Millrace, cached strings', workload, () => millrace(KEYS)),
    direct('Millrace, cached strings, without the addon', workload, () => millraceWithoutAddon(KEYS)),
  ],
  goals: [
    {
      target: 'P2',
      label: 'Millrace by handle / bare Map, cached strings',
      unit: 'x',
      value: ratioOf('Millrace by handle', 'bare Map, cached strings'),
      withoutAddon: ratioOf('Millrace by handle, without the addon', 'bare Map, cached strings'),
      atMost: 1,
      stretch: 0.5,
    },
    {
      label: 'Millrace by handle / Millrace, cached strings',
      unit: 'x',
      value: ratioOf('Millrace by handle', 'Millrace, cached strings'),
    },
    ...['Millrace by handle', 'Millrace, cached strings'].map((name) => ({
      label: `${name}: without the addon / with it`,
      unit: 'x' as const,
      value: ratioOf(`${name}, without the addon`, name),
    })),
  ],
}
