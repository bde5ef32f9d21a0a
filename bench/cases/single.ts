import { addonMissing, type Side } from '../batches.js'
import { type Benchmark, ratioOf } from '../benchmark.js'
import { LARGE_SHAPES, LARGE_UNITS, type LargeFigure, largeWindow } from '../large-windows.js'

const SHAPES = [...LARGE_SHAPES, [1_048_576, 'blocks'], [1_048_576, 'fenwick']] as const
const FIGURES: readonly LargeFigure[] = ['handle', 'admission', 'gap', 'usage', 'retry']
/** A key takes up to four megabytes. */
const FEW_KEYS = 3
const SIDES: readonly Side[] = ['addon', 'TypeScript']

const shapeName = ([buckets, rangeSum]: (typeof SHAPES)[number]) =>
  `${buckets.toLocaleString('en')} buckets, ${rangeSum ?? 'linear'}`
const nameOf = (side: Side, shape: (typeof SHAPES)[number]) => `${side}, ${shapeName(shape)}`

export const single: Benchmark = {
  title: 'single keys on windows of 60 to 1,048,576 buckets: addon and TypeScript',
  units: Object.fromEntries(FIGURES.map((figure) => [figure, LARGE_UNITS[figure]])),
  contenders: SHAPES.flatMap((shape) =>
    SIDES.map((side) => {
      const [buckets, rangeSum] = shape
      const options = { window: buckets * 1_000, granularity: '1s', ...(rangeSum && { rangeSum }) } as const
      return largeWindow(nameOf(side, shape), options, FIGURES, FEW_KEYS, side)
    }),
  ),
  goals: SHAPES.flatMap((shape) =>
    FIGURES.map((figure) => ({
      label: `${shapeName(shape)}, ${figure}: TypeScript / addon`,
      unit: 'x' as const,
      value: ratioOf(nameOf('TypeScript', shape), nameOf('addon', shape), figure),
    })),
  ),
  unavailable: addonMissing,
}
