import { createLimiter } from 'millrace'
import { type Benchmark, type Contender, type Effort, timesOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cached, inOrder, randomOrder } from '../keys.js'
import { millrace } from '../millrace.js'
import { WINDOW_MS } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const course = ({ operations }: Effort) => ({
  keyAt: cached(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

/** Filling uses up the one unit that each key has, for longer than the run takes. */
const refused: Contender = {
  name: 'refused',
  measure(effort) {
    const limiter = createLimiter({ limit: 1, window: WINDOW_MS, maxKeys: KEYS })
    return timeDecisions(course(effort), (key) => limiter.check(key).allowed, 0)
  },
}

export const refusal: Benchmark = {
  title: `check(key) over ${KEYS.toLocaleString('en')} hot keys, cached strings, all far over their limit`,
  units: { ns: 'nanoseconds a decision' },
  contenders: [refused, direct('admitted', course, () => millrace(KEYS))],
  goals: [
    {
      target: 'P12',
      what: 'refused / admitted',
      unit: 'x',
      value: timesOf('refused', 'admitted'),
      atMost: 0.9,
    },
  ],
}
