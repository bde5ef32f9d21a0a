import { addonMissing } from '../batches.js'
import { type Benchmark, timesOf } from '../benchmark.js'
import { LARGE_BATCH_FIGURES, LARGE_BATCH_UNITS, largeBatches, largeBatchName } from '../large-batches.js'

const SHAPES = [
  [60, undefined],
  [3_600, 'blocks'],
  [3_600, 'fenwick'],
  [86_400, 'blocks'],
  [86_400, 'fenwick'],
] as const

export const largeBatch: Benchmark = {
  title: 'checkMany of packed keys on windows of more and more granules, by the addon and by TypeScript',
  units: LARGE_BATCH_UNITS,
  contenders: SHAPES.flatMap(([granules, rangeSum]) => [
    largeBatches('addon', granules, rangeSum),
    largeBatches('TypeScript', granules, rangeSum),
  ]),
  goals: SHAPES.flatMap(([granules, rangeSum]) =>
    LARGE_BATCH_FIGURES.map((figure) => {
      const [typescript, addon] = (['TypeScript', 'addon'] as const).map((side) =>
        largeBatchName(side, granules, rangeSum),
      )
      return {
        what: `${granules.toLocaleString('en')} granules, ${rangeSum ?? 'one by one'}, ${figure}: TypeScript / addon`,
        unit: 'x' as const,
        value: timesOf(typescript!, addon!, figure),
      }
    }),
  ),
  unavailable: addonMissing,
}
