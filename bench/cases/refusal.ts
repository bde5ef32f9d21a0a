import { createLimiter } from 'millrace'
import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, ratioOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cachedKeys, inOrder, randomOrder } from '../keys.js'
import { millrace, millraceWithoutAddon } from '../millrace.js'
import { WINDOW_MS } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const workload = ({ operations }: Effort) => ({
  keyAt: cachedKeys(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Inserting the keys uses up their limit of one unit for longer than the run takes. */
function refused(name: string, side?: Side): Contender {
  return {
    name,
    measure(effort) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const limiter = createLimiter({ limit: 1, window: WINDOW_MS, maxKeys: KEYS })
      return timeDecisions(workload(effort), (key) => limiter.check(key).allowed, 0)
    },
  }
}

export const refusal: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} hot keys, cached strings, all over their limit`,
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    refused('refused'),
    direct('admitted', workload, () => millrace(KEYS)),
    refused('refused, without the addon', 'TypeScript'),
    direct('admitted, without the addon', workload, () => millraceWithoutAddon(KEYS)),
  ],
  goals: [
    {
      target: 'P12',
      label: 'refused / admitted',
      unit: 'x',
      value: ratioOf('refused', 'admitted'),
      withoutAddon: ratioOf('refused, without the addon', 'admitted, without the addon'),
      atMost: 0.9,
    },
    {
      label: 'refused / admitted, without the addon',
      unit: 'x',
      value: ratioOf('refused, without the addon', 'admitted, without the addon'),
    },
  ],
}
