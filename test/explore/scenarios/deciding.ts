// Decisions on one key that has a cell: charges, sums, rollovers, late threads.
import { MAX_LIMIT } from '#millrace/core/rule-algorithms.js'
import { byHandle, check, checkLate, type Forbidden, readClock, type Scenario } from '../scenario.js'

/** All forbidden outcomes but 'fresh quota'. */
export const ANYTHING: readonly Forbidden[] = [
  'over',
  'early',
  'past its block',
  'evicted block',
  'too many blocks',
  'wrong block',
  'wrong cell',
  'two cells',
  'stuck way',
  'lost charge',
  'low total',
  'refused at rest',
  'locked out',
  'hang',
]
/** A ring has two buckets here: a lap is two granules. */
const LAP = 2
/** In granules. The newest reading that the header can hold is 8.5 years after the clock's start. */
const NINE_YEARS = 9 * 366 * 86_400
const LONG_GAPS = [LAP * 64, LAP * 255, LAP * 256, LAP * 256 + 1, LAP * 257, LAP * 512]

export const deciding: Readonly<Record<string, Scenario>> = {
  'two admit on the last unit': {
    small: true,
    forbidden: ANYTHING,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [check()]],
  },
  'three admit on the last unit': {
    forbidden: ANYTHING,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [check()], [check()]],
  },
  'costs of 1, 2 and 3 against a limit of 3': {
    forbidden: ANYTHING,
    times: [20],
    before: [[19, check(1, 1)]],
    limit: 3,
    threads: [[check(1, 1)], [check(1, 2)], [check(1, 3)]],
  },
  'an admission against a rollover': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    before: [[20, check()]],
    threads: [[check()], [check()]],
  },
  'three admit while the window rolls over': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [check()], [check()]],
  },
  'a sum among charges': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    before: [[19, check()]],
    limit: 2,
    threads: [[check()], [check(1, 2)]],
  },
  'a rollover against a rollover': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    before: [
      [19, check()],
      [20, check()],
    ],
    limit: 2,
    threads: [[check()], [check()], [check()]],
  },
  'decisions one after the other, among rollovers': {
    forbidden: ANYTHING,
    times: [20, 21, 22, 23],
    before: [[20, check()]],
    limit: 2,
    threads: [
      [check(), check()],
      [check(1, 2), check()],
    ],
  },
  'a window of three granules rolls over': {
    forbidden: ANYTHING,
    times: [20, 21, 24],
    buckets: 3,
    before: [
      [18, check()],
      [19, check()],
    ],
    limit: 3,
    threads: [[check(1, 2)], [check()], [check()]],
  },
  'two ticks late': {
    forbidden: ANYTHING,
    times: [20, 22],
    before: [[20, check()]],
    threads: [[check()], [check()], [check()]],
  },
  'three ticks late': {
    forbidden: ANYTHING,
    times: [20, 23],
    before: [[20, check()]],
    threads: [[check()], [check()], [check()]],
  },
  'many ticks late': {
    forbidden: ANYTHING,
    times: [20, 20 + LAP * 70 + 1],
    before: [[20, check()]],
    threads: [[check()], [check()], [check()]],
  },
  'stalls of up to 200 laps': {
    forbidden: ANYTHING,
    times: [20, 20 + LAP, 20 + LAP * 100, 20 + LAP * 200],
    before: [[20, check()]],
    threads: [[check()], [check(), check()]],
  },
  'a stall of more than an hour': {
    forbidden: ANYTHING,
    times: [20, 20 + 4_000, 20 + 4_001],
    before: [[20, check()]],
    threads: [[check()], [check(), check()]],
  },
  'a stall of more than an hour, nine years after the limiter was made': {
    forbidden: ANYTHING,
    times: [NINE_YEARS, NINE_YEARS + 4_000, NINE_YEARS + 4_001],
    before: [[NINE_YEARS, check()]],
    threads: [[check()], [check(), check()]],
  },
  'a return after exactly 256 laps': {
    forbidden: ANYTHING,
    times: [20, 20 + LAP * 256],
    before: [[20, check()]],
    threads: [[check()], [check()]],
    gaps: LONG_GAPS,
  },
  'a charge in a cell that comes back after 256 laps': {
    // The reason stands at the next scenario.
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20 + LAP * 256],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [check()]],
  },
  // The sweep marks a bucket that it clears. When the bucket's lap comes round to the same number, a charge
  // that was not admitted cannot be taken out in that one tick, and stays for its window. Without the
  // mark, a thread that stalled for all those laps would take out another thread's charge.
  'a swept bucket whose lap comes round': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20 + LAP * 256],
    before: [
      [20, check()],
      [21 + LAP * 128, check()],
    ],
    limit: 2,
    threads: [[check(1, 2)], [check()]],
    gaps: LONG_GAPS,
  },
  'a cell used once in 64 laps, with one idle bucket': {
    forbidden: ANYTHING,
    times: [20 + LAP * 192, 20 + LAP * 256],
    before: [
      [20, check(1, 2)],
      [21 + LAP * 64, check()],
      [21 + LAP * 128, check()],
    ],
    limit: 2,
    threads: [[check()], [check()]],
    gaps: LONG_GAPS,
  },
  'a stalled sweep against a charge': {
    forbidden: ANYTHING,
    times: [64, 65],
    before: [[20, check()]],
    threads: [[check()], [check(), check()]],
  },
  'the sweep against a charge': {
    forbidden: ANYTHING,
    times: [20, 21 + LAP * 31, 20 + LAP * 64],
    before: [[20, check()]],
    limit: 3,
    threads: [[check()], [check(1, 2), check()]],
    gaps: [LAP * 256],
  },
  'the smooth edge, within granules': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    edge: 'smooth',
    times: [20, 20.5, 21, 21.25],
    before: [[19.75, check(1, 2)]],
    limit: 3,
    threads: [[check()], [check(1, 2)], [check()]],
  },
  'by handles that remember the way': {
    forbidden: ANYTHING,
    times: [20, 21],
    before: [[20, check()]],
    limit: 2,
    threads: [
      [byHandle(), byHandle()],
      [byHandle(), byHandle()],
    ],
  },
  'clocks that differ by a granule': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20, 21, 22],
    ahead: [0, 1],
    before: [[20, check()]],
    limit: 2,
    threads: [
      [check(), check()],
      [check(), check()],
    ],
  },
  'a batch with one reading': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    before: [[20, check()]],
    limit: 2,
    threads: [[{ do: 'batch', keys: [1, 1] }], [check(), check()]],
  },
  'a check by an old reading is overtaken by a newer one': {
    forbidden: ANYTHING,
    times: [21, 22],
    before: [[20, check()]],
    limit: 3,
    threads: [[readClock, checkLate()], [check()]],
  },
  // An arena has one newest reading: one thread raises it for its key while another thread uses an older one.
  'two threads raise the newest reading to different values': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [21, 22],
    homes: { 1: [0, 1], 2: [1, 0] },
    before: [
      [20, check(1)],
      [20, check(2)],
    ],
    threads: [[readClock, checkLate(2)], [check(1)], [readClock, checkLate(1)]],
  },
  'the largest costs in one bucket': {
    forbidden: ANYTHING,
    times: [20],
    before: [[20, check()]],
    limit: MAX_LIMIT,
    threads: [[check(1, MAX_LIMIT - 1)], [check(1, MAX_LIMIT - 1), check()]],
  },
}
