import { createLimiter } from 'millrace'
import { SIDES, type Side } from '../batches.js'
import { type Benchmark, type Contender, type Effort, timesOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cached, inOrder, randomOrder } from '../keys.js'
import { millrace, millraceWithoutAddon } from '../millrace.js'
import { WINDOW_MS } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const course = ({ operations }: Effort) => ({
  keyAt: cached(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Filling uses up the one unit that each key has, for longer than the run takes. */
function refused(name: string, side?: Side): Contender {
  return {
    name,
    measure(effort) {
      if (side) process.env.MILLRACE_NATIVE = SIDES[side]
      const limiter = createLimiter({ limit: 1, window: WINDOW_MS, maxKeys: KEYS })
      return timeDecisions(course(effort), (key) => limiter.check(key).allowed, 0)
    },
  }
}

export const refusal: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} hot keys, cached strings, all far over their limit`,
  units: { ns: 'nanoseconds a decision' },
  contenders: [
    refused('refused'),
    direct('admitted', course, () => millrace(KEYS)),
    refused('refused, without the addon', 'TypeScript'),
    direct('admitted, without the addon', course, () => millraceWithoutAddon(KEYS)),
  ],
  goals: [
    {
      target: 'P12',
      what: 'refused / admitted',
      unit: 'x',
      value: timesOf('refused', 'admitted'),
      atMost: 0.9,
    },
    {
      what: 'refused / admitted, without the addon',
      unit: 'x',
      value: timesOf('refused, without the addon', 'admitted, without the addon'),
    },
  ],
}
