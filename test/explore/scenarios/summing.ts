// Windows that are summed by nodes: block sums on one level and on two, and a Fenwick tree, each where its
// laps turn. Blocks have two buckets here.
import { check, checkLate, giveBack, type Op, readClock, refund, type Scenario } from '../scenario.js'
import { ANYTHING } from './deciding.js'

const AMONG_REFUNDS = ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early')
const STRUCTURES = {
  'block sums': { sums: 'blocks', buckets: 2, ring: 6 },
  'block sums on two levels': { sums: 'blocks', buckets: 3, ring: 8 },
  'a Fenwick tree': { sums: 'fenwick', buckets: 3, ring: 6 },
} as const
const penalize = (cost: number): Op => ({ do: 'penalize', key: 1, cost })

/** `turn` is the first tick of a lap. */
function scenariosOf(ring: number, buckets: number, turn: number): Record<string, Scenario> {
  const last = turn - 1
  return {
    'two charge one bucket': {
      forbidden: ANYTHING,
      times: [turn],
      before: [[last, check()]],
      limit: 3,
      threads: [[check()], [check(1, 2)]],
    },
    'a charge against a rollover': {
      forbidden: ANYTHING,
      times: [last, turn, turn + 1],
      before: [[last - 1, check()]],
      limit: 2,
      threads: [[check()], [check()]],
    },
    'a sum at the turn of a lap': {
      forbidden: ANYTHING,
      times: [last, turn, turn + buckets],
      before: [[turn - buckets, check()]],
      limit: 2,
      threads: [[check(1, 2)], [check(), check()]],
    },
    'a sum at the turn of a block': {
      forbidden: ANYTHING,
      times: [turn + 1, turn + 2, turn + 3],
      before: [[turn + 1 - buckets, check()]],
      limit: 2,
      threads: [[check(1, 2)], [check(), check()]],
    },
    'a sum that takes as long as the rest of a lap': {
      forbidden: ANYTHING,
      times: [turn + buckets, turn + ring],
      before: [[turn + buckets, check()]],
      limit: 2,
      threads: [[check(1, 2)], [check()]],
    },
    'a charge is taken out': {
      forbidden: ANYTHING,
      times: [turn, turn + buckets],
      before: [[last, check()]],
      limit: 3,
      threads: [[check(1, 2)], [check(1, 2)]],
    },
    'the oldest granule of a window': {
      forbidden: ANYTHING,
      times: [turn + 1 + buckets],
      before: [[turn + 1, check()]],
      limit: 2,
      threads: [[check()], [check()]],
    },
    'a late charge against a newer lap': {
      forbidden: ANYTHING,
      times: [turn, turn + ring, turn + ring + 1],
      threads: [[readClock, checkLate()], [check()]],
    },
    'a refund among decisions': {
      forbidden: AMONG_REFUNDS,
      times: [last, turn],
      before: [
        [last - 1, check()],
        [last, check()],
      ],
      limit: 3,
      threads: [[check()], [refund(3)], [check()]],
    },
    'an admission given back': {
      forbidden: AMONG_REFUNDS,
      times: [last, turn, turn + ring],
      limit: 2,
      threads: [[check(), giveBack], [check(1, 2)]],
    },
    'a penalty beyond the largest count': {
      forbidden: AMONG_REFUNDS,
      times: [turn],
      before: Array.from({ length: 4 }, (_, i) => [turn - (i >> 1), penalize(2 ** 22 - 2)] as const),
      limit: 2,
      threads: [[penalize(2 ** 22 - 2)], [penalize(9), check()]],
    },
    'idle for all laps': {
      forbidden: ANYTHING,
      times: [last, turn],
      before: [[last, check()]],
      threads: [[check()], [check()]],
      gaps: [
        ring,
        64 * ring,
        255 * ring,
        256 * ring - 1,
        256 * ring,
        256 * ring + 1,
        256 * ring + 2,
        512 * ring,
      ],
    },
    'one bucket idle for all laps': {
      small: true,
      forbidden: ANYTHING,
      times: [turn + ring],
      before: [[turn + 1, check()]],
      threads: [[check(), giveBack]],
      gaps: [ring, 255 * ring + 1, 255 * ring + buckets, 255 * ring + buckets + 1, 256 * ring],
    },
    'the sweep against a charge': {
      forbidden: ANYTHING,
      times: [turn, turn + 64 * ring, turn + 64 * ring + 1],
      before: [[turn - 60 * ring + 1, check()]],
      limit: 2,
      threads: [[check()], [check(), check()]],
    },
  }
}

export const summing: Readonly<Record<string, Scenario>> = Object.fromEntries(
  Object.entries(STRUCTURES).flatMap(([structure, { sums, buckets, ring }]) =>
    Object.entries(scenariosOf(ring, buckets, 200 * ring)).map(([what, scenario]) => [
      `${structure}: ${what}`,
      { ...scenario, sums, buckets },
    ]),
  ),
)
