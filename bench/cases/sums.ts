import { type Benchmark, type Goal, ratioOf } from '../benchmark.js'
import { LARGE_UNITS, type LargeFigure, largeWindow } from '../large-windows.js'

/** The window's number of one-second buckets. */
const SIZES = [60, 256, 257, 1_024, 3_600, 16_384, 86_400, 1_048_576]
const STRUCTURES = [undefined, 'blocks', 'fenwick'] as const
const { handle: _byHandle, ...UNITS } = LARGE_UNITS
const FIGURES = Object.keys(UNITS) as LargeFigure[]
/** Windows of up to this many buckets have no range sum. */
const MOST_LINEAR = 256
/** A key takes up to four megabytes. */
const FEW_KEYS = 3

const nameOf = (buckets: number, structure: (typeof STRUCTURES)[number]) =>
  `${buckets.toLocaleString('en')} buckets, ${structure ?? 'linear'}`

export const sums: Benchmark = {
  title: 'windows of 60 to 1,048,576 buckets: linear sums, block sums, Fenwick tree',
  units: UNITS,
  contenders: SIZES.flatMap((buckets) =>
    STRUCTURES.filter((structure) => (structure === undefined) === buckets <= MOST_LINEAR).map(
      (structure) => {
        const options = { window: buckets * 1_000, granularity: '1s' } as const
        const forced = structure === undefined ? options : { ...options, rangeSum: structure }
        return largeWindow(nameOf(buckets, structure), forced, FIGURES, FEW_KEYS)
      },
    ),
  ),
  goals: SIZES.filter((buckets) => buckets > MOST_LINEAR).flatMap((buckets) =>
    FIGURES.map(
      (figure): Goal => ({
        label: `${buckets.toLocaleString('en')} buckets, ${figure}: fenwick / blocks`,
        unit: 'x',
        value: ratioOf(nameOf(buckets, 'fenwick'), nameOf(buckets, 'blocks'), figure),
      }),
    ),
  ),
}
