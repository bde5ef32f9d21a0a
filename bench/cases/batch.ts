import { addonMissing, batches, batchesName, HUGE_PAGES } from '../batches.js'
import { type Benchmark, ratioOf } from '../benchmark.js'
import { atFloor, DISTANCE, floor, nameOf } from './floor.js'

const FEW = 10_000
const MANY = 1_000_000
const SIZE = 4_096
const SIZES = [4, 8, 16, 32, 64, 256]

const floorName = (keys: number) => nameOf('C++ floor, prefetching', keys)

export const batch: Benchmark = {
  title: 'checkMany of packed keys in random order, all in the table: addon and TypeScript',
  units: { ns: 'nanoseconds per decision' },
  contenders: [
    ...[FEW, MANY].flatMap((keys) => [
      batches('addon', keys, SIZE),
      batches('TypeScript', keys, SIZE),
      atFloor('C++ floor, prefetching', keys, DISTANCE),
    ]),
    batches('addon', MANY, SIZE, HUGE_PAGES),
    ...SIZES.flatMap((size) => [batches('addon', FEW, size), batches('TypeScript', FEW, size)]),
  ],
  goals: [
    ...[
      { keys: FEW, atMost: 2.5 },
      { keys: MANY, atMost: 1.5 },
    ].map(({ keys, atMost }) => ({
      target: 'P4',
      label: `${keys.toLocaleString('en')} keys: addon / C++ floor`,
      unit: 'x' as const,
      value: ratioOf(batchesName('addon', keys, SIZE), floorName(keys)),
      atMost,
    })),
    ...[FEW, MANY].map((keys) => ({
      label: `${keys.toLocaleString('en')} keys: TypeScript / addon`,
      unit: 'x' as const,
      value: ratioOf(batchesName('TypeScript', keys, SIZE), batchesName('addon', keys, SIZE)),
    })),
    {
      label: `${MANY.toLocaleString('en')} keys, addon: huge pages / usual pages`,
      unit: 'x',
      value: ratioOf(batchesName('addon', MANY, SIZE) + HUGE_PAGES, batchesName('addon', MANY, SIZE)),
    },
    ...SIZES.map((size) => ({
      label: `${size} keys per batch: TypeScript / addon`,
      unit: 'x' as const,
      value: ratioOf(batchesName('TypeScript', FEW, size), batchesName('addon', FEW, size)),
    })),
  ],
  unavailable: () => addonMissing() ?? floor.unavailable?.(),
}
