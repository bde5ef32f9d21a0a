import { addonMissing } from '../batches.js'
import { type Benchmark, ratioOf } from '../benchmark.js'
import { LARGE_BATCH_FIGURES, LARGE_BATCH_UNITS, largeBatches, largeBatchName } from '../large-batches.js'
import { LARGE_SHAPES } from '../large-windows.js'

export const largeBatch: Benchmark = {
  title: 'checkMany of packed keys on windows of 60 to 86,400 buckets: addon and TypeScript',
  units: LARGE_BATCH_UNITS,
  contenders: LARGE_SHAPES.flatMap(([buckets, rangeSum]) => [
    largeBatches('addon', buckets, rangeSum),
    largeBatches('TypeScript', buckets, rangeSum),
  ]),
  goals: LARGE_SHAPES.flatMap(([buckets, rangeSum]) =>
    LARGE_BATCH_FIGURES.map((figure) => {
      const [typescript, addon] = (['TypeScript', 'addon'] as const).map((side) =>
        largeBatchName(side, buckets, rangeSum),
      )
      return {
        label: `${buckets.toLocaleString('en')} buckets, ${rangeSum ?? 'linear'}, ${figure}: TypeScript / addon`,
        unit: 'x' as const,
        value: ratioOf(typescript!, addon!, figure),
      }
    }),
  ),
  unavailable: addonMissing,
}
