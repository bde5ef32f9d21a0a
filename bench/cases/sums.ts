import { type Benchmark, type Goal, timesOf } from '../benchmark.js'
import { LARGE_UNITS, type LargeFigure, largeWindow } from '../large-windows.js'

/** Granules in the window; its granule is a second. */
const SIZES = [60, 256, 257, 1_024, 3_600, 16_384, 86_400, 1_048_576]
const STRUCTURES = [undefined, 'blocks', 'fenwick'] as const
const { handle: _byHandle, ...UNITS } = LARGE_UNITS
const FIGURES = Object.keys(UNITS) as LargeFigure[]
/** At most so many are always summed one by one. */
const PLAIN = 256
/** Four megabytes a key, at most. */
const FEW_KEYS = 3

const nameOf = (buckets: number, structure: (typeof STRUCTURES)[number]) =>
  `${buckets.toLocaleString('en')} granules, ${structure ?? 'one by one'}`

export const sums: Benchmark = {
  title: 'windows of more and more granules: one by one, block sums, a Fenwick tree',
  units: UNITS,
  contenders: SIZES.flatMap((buckets) =>
    STRUCTURES.filter((structure) => (structure === undefined) === buckets <= PLAIN).map((structure) => {
      const options = { window: buckets * 1_000, granularity: '1s' } as const
      const forced = structure === undefined ? options : { ...options, rangeSum: structure }
      return largeWindow(nameOf(buckets, structure), forced, FIGURES, FEW_KEYS)
    }),
  ),
  goals: SIZES.filter((buckets) => buckets > PLAIN).flatMap((buckets) =>
    FIGURES.map(
      (figure): Goal => ({
        what: `${buckets.toLocaleString('en')} granules, ${figure}: fenwick / blocks`,
        unit: 'x',
        value: timesOf(nameOf(buckets, 'fenwick'), nameOf(buckets, 'blocks'), figure),
      }),
    ),
  ),
}
