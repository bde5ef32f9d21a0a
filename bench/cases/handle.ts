import { type Benchmark, timesOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { cached, inOrder, randomOrder } from '../keys.js'
import { millrace, millraceHandles } from '../millrace.js'
import { mapFloor } from '../peers.js'
import { timeDecisions } from '../timing.js'

const KEYS = 10_000

const course = ({ operations }: { operations: number }) => ({
  keyAt: cached(KEYS),
  order: randomOrder(KEYS, operations),
  filled: inOrder(KEYS),
})

export const handle: Benchmark = {
  title: `check(handle) over ${KEYS.toLocaleString('en')} hot keys in random order`,
  units: { ns: 'nanoseconds a decision' },
  contenders: [
    {
      name: 'Millrace by handle',
      measure(effort) {
        const { handleAt, decide } = millraceHandles(cached(KEYS), KEYS)
        return timeDecisions({ ...course(effort), keyAt: handleAt }, decide)
      },
    },
    direct('Map floor, cached', course, mapFloor),
    direct('Millrace, cached', course, () => millrace(KEYS)),
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
  ],
}
