import { monotonicClock } from '#millrace/core/clock.js'
import { type Benchmark, type Effort, ratioOf } from '../benchmark.js'
import { direct } from '../contenders.js'
import { randomOrder } from '../keys.js'

/** Each timed call reads a clock instead of deciding; a reading is above 0. */
const workload = ({ operations }: Effort) => ({
  keyAt: (index: number) => index,
  order: randomOrder(1, operations),
})

export const clock: Benchmark = {
  title: 'one reading of a clock',
  units: { ns: 'nanoseconds per reading' },
  contenders: [
    direct('no clock, the loop alone', workload, () => (index) => index === 0),
    direct('Date.now()', workload, () => () => Date.now() > 0),
    direct('performance.now()', workload, () => () => performance.now() > 0),
    direct('monotonicClock (the default)', workload, () => () => monotonicClock.now() > 0),
  ],
  goals: [
    {
      label: 'monotonicClock / Date.now()',
      unit: 'x',
      value: ratioOf('monotonicClock (the default)', 'Date.now()'),
    },
  ],
}
