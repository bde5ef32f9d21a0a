import { addonMissing, type Side } from '../batches.js'
import { type Benchmark, timesOf } from '../benchmark.js'
import { LARGE_UNITS, type LargeFigure, largeWindow } from '../large-windows.js'

/** Granules of a second in the window, and what sums them; where few are, nothing can be chosen. */
const SHAPES = [
  [60, undefined],
  [3_600, 'blocks'],
  [3_600, 'fenwick'],
  [86_400, 'blocks'],
  [86_400, 'fenwick'],
  [1_048_576, 'blocks'],
  [1_048_576, 'fenwick'],
] as const
const FIGURES: readonly LargeFigure[] = ['handle', 'admission', 'gap', 'usage', 'retry']
/** Four megabytes a key, at most. */
const FEW_KEYS = 3
const SIDES: readonly Side[] = ['addon', 'TypeScript']

const shapeName = ([granules, rangeSum]: (typeof SHAPES)[number]) =>
  `${granules.toLocaleString('en')} granules, ${rangeSum ?? 'one by one'}`
const nameOf = (side: Side, shape: (typeof SHAPES)[number]) => `${side}, ${shapeName(shape)}`

export const single: Benchmark = {
  title: 'one key at a time on windows of more and more granules, by the addon and by TypeScript',
  units: Object.fromEntries(FIGURES.map((figure) => [figure, LARGE_UNITS[figure]])),
  contenders: SHAPES.flatMap((shape) =>
    SIDES.map((side) => {
      const [granules, rangeSum] = shape
      const options = { window: granules * 1_000, granularity: '1s', ...(rangeSum && { rangeSum }) } as const
      return largeWindow(nameOf(side, shape), options, FIGURES, FEW_KEYS, side)
    }),
  ),
  goals: SHAPES.flatMap((shape) =>
    FIGURES.map((figure) => ({
      what: `${shapeName(shape)}, ${figure}: TypeScript / addon`,
      unit: 'x' as const,
      value: timesOf(nameOf('TypeScript', shape), nameOf('addon', shape), figure),
    })),
  ),
  unavailable: addonMissing,
}
