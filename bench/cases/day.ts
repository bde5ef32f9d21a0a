import { type Benchmark, type Goal, ratioOf } from '../benchmark.js'
import { KEYS, LARGE_UNITS, largeWindow } from '../large-windows.js'

const MINUTE = 'a minute in 1 s buckets'
const BLOCKS = 'a day in 1 s buckets, block sums'
const FENWICK = 'a day in 1 s buckets, Fenwick tree'
const FIGURES = ['admission', 'refusal', 'gap'] as const
const BOUNDS = [
  ['admission', 'admissions', 2],
  ['refusal', 'refusals at the limit, each in a new bucket', 5],
  ['gap', 'admissions after random gaps of up to a day', 3],
] as const

export const day: Benchmark = {
  title: `windows of 86,400 and of 60 buckets, over ${KEYS} keys`,
  units: { admission: LARGE_UNITS.admission, refusal: LARGE_UNITS.refusal, gap: LARGE_UNITS.gap },
  contenders: [
    largeWindow(MINUTE, { window: '1m', granularity: '1s' }, FIGURES),
    largeWindow(BLOCKS, { window: '1d', granularity: '1s', rangeSum: 'blocks' }, FIGURES),
    largeWindow(FENWICK, { window: '1d', granularity: '1s', rangeSum: 'fenwick' }, FIGURES),
  ],
  goals: [
    ...BOUNDS.map(
      ([figure, name, atMost]): Goal => ({
        target: 'P8',
        label: `${name}: a day / a minute`,
        unit: 'x',
        value: ratioOf(BLOCKS, MINUTE, figure),
        atMost,
      }),
    ),
    ...BOUNDS.map(
      ([figure, name]): Goal => ({
        label: `${name}: a day with a Fenwick tree / a minute`,
        unit: 'x',
        value: ratioOf(FENWICK, MINUTE, figure),
      }),
    ),
  ],
}
