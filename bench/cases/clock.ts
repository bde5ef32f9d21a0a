import { monotonicClock } from '#millrace/core/clock.js'
import { type Benchmark, type Effort, timesOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { randomOrder } from '../keys.js'

/** Nothing but the clock: a decision here is a reading, and a reading is above 0. */
const course = ({ operations }: Effort) => ({
  keyAt: (index: number) => index,
  order: randomOrder(1, operations),
})

export const clock: Benchmark = {
  title: 'one reading of a clock',
  units: { ns: 'nanoseconds a reading' },
  contenders: [
    direct('only the loop', course, () => (index) => index === 0),
    direct('Date.now()', course, () => () => Date.now() > 0),
    direct('performance.now()', course, () => () => performance.now() > 0),
    direct('monotonicClock (the default)', course, () => () => monotonicClock.now() > 0),
  ],
  goals: [
    {
      what: 'monotonicClock / Date.now()',
      unit: 'x',
      value: timesOf('monotonicClock (the default)', 'Date.now()'),
    },
  ],
}
