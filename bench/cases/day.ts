import { type Benchmark, type Goal, timesOf } from '../benchmark.js'
import { KEYS, LARGE_UNITS, largeWindow } from '../large-windows.js'

const MINUTE = 'a minute by the second'
const BLOCKS = 'a day by the second, block sums'
const FENWICK = 'a day by the second, Fenwick tree'
const FIGURES = ['admission', 'refusal', 'gap'] as const
const BOUNDS = [
  ['admission', 'admissions', 2],
  ['refusal', 'refusals at the limit, a new second each', 5],
  ['gap', 'admissions after random gaps up to a day', 3],
] as const

export const day: Benchmark = {
  title: `a window of 86,400 granules beside one of 60, over ${KEYS} keys`,
  units: { admission: LARGE_UNITS.admission, refusal: LARGE_UNITS.refusal, gap: LARGE_UNITS.gap },
  contenders: [
    largeWindow(MINUTE, { window: '1m', granularity: '1s' }, FIGURES),
    largeWindow(BLOCKS, { window: '1d', granularity: '1s', rangeSum: 'blocks' }, FIGURES),
    largeWindow(FENWICK, { window: '1d', granularity: '1s', rangeSum: 'fenwick' }, FIGURES),
  ],
  goals: [
    ...BOUNDS.map(
      ([figure, what, atMost]): Goal => ({
        target: 'P8',
        what: `${what}: a day / a minute`,
        unit: 'x',
        value: timesOf(BLOCKS, MINUTE, figure),
        atMost,
      }),
    ),
    ...BOUNDS.map(
      ([figure, what]): Goal => ({
        what: `${what}: a day by a Fenwick tree / a minute`,
        unit: 'x',
        value: timesOf(FENWICK, MINUTE, figure),
      }),
    ),
  ],
}
