// Operations that change counts without a decision, concurrent with decisions: refunds, penalties, blocks,
// new limits.
import { check, giveBack, type Op, refund, type Scenario } from '../scenario.js'
import { ANYTHING } from './deciding.js'

/** A charge that overlaps a refund by key may stay for a window. */
const AMONG_REFUNDS = ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early')
/** The mark of the bucket is 1 after the first of these, 2 after the second, then 1 again. */
const CHARGED_AND_REFUNDED: NonNullable<Scenario['before']> = [
  [20, check()],
  [20, refund(1)],
]
const penalize = (cost: number): Op => ({ do: 'penalize', key: 1, cost })
const block = (granules: number, key = 1): Op => ({ do: 'block', key, ms: granules * 1_000 })
const unblock: Op = { do: 'unblock', key: 1 }
const clear: Op = { do: 'clear', key: 1 }
const update = (limit: number): Op => ({ do: 'update', limit })

export const adjusting: Readonly<Record<string, Scenario>> = {
  'a refund among decisions': {
    forbidden: AMONG_REFUNDS,
    times: [20, 21],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [refund(2)], [check()]],
  },
  'a refund, an undo and a decision': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [[20, check(1, 2)]],
    limit: 3,
    threads: [[check(1, 1), refund(1)], [check(1, 2)], [refund(1)]],
  },
  // The cell is full and AS_OF notes it. Of 256 refunds, which would bring the old epoch back, two are left
  // to the thread.
  'an epoch goes round by refunds': {
    small: true,
    forbidden: ANYTHING,
    times: [20],
    before: [
      [20, check(1, 256)],
      [20, check()],
      ...Array.from({ length: 254 }, () => [20, refund(1)] as const),
    ],
    limit: 256,
    threads: [[refund(1), refund(1), check()]],
  },
  'an epoch goes round by blocks': {
    small: true,
    forbidden: ANYTHING,
    times: [20],
    before: [[20, check()], [20, check(1, 2)], ...Array.from({ length: 254 }, () => [20, block(0)] as const)],
    limit: 2,
    threads: [[block(0), block(0), check()]],
  },
  'refunds before and after': {
    small: true,
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    threads: [[refund(1), check()], [check(1, 2)]],
  },
  'a refund while its way is claimed': {
    forbidden: AMONG_REFUNDS,
    times: [21, 23],
    homes: { 9: [1, 0] },
    before: [
      [19, { do: 'lose', key: 9 }],
      [20, check()],
    ],
    threads: [[refund(1)], [check(2), check(2)]],
    restKeys: [],
  },
  'an admission given back at once': {
    forbidden: ANYTHING,
    times: [20, 21],
    before: [[20, check()]],
    limit: 2,
    threads: [
      [check(), giveBack],
      [check(1, 2), check()],
    ],
  },
  'an admission given back after its window': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20, 22, 20 + 2 * 128, 20 + 2 * 200],
    limit: 2,
    threads: [[check(), giveBack], [check(1, 2)]],
  },
  'an admission given back while its way is claimed': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20, 22],
    homes: { 9: [1, 0] },
    before: [[19, { do: 'lose', key: 9 }]],
    threads: [
      [check(), giveBack],
      [check(2), check(2)],
    ],
    restKeys: [],
  },
  'given back after refunds by key': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    threads: [[refund(1), check(), refund(1), check(), refund(1), check(), giveBack], [check()]],
  },
  // The mark of a bucket comes round while a charge in it is given back. The charges of other threads must
  // stay.
  'refunds by key while an admission is given back': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: CHARGED_AND_REFUNDED,
    threads: [
      [check(), giveBack],
      [refund(1), check(), refund(1), check()],
    ],
  },
  'refunds by key that overlap, and an admission that one of them took': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [...CHARGED_AND_REFUNDED, ...CHARGED_AND_REFUNDED, [20, check()]],
    threads: [[check(), giveBack], [refund(1), refund(1), check(), check()], [refund(1)]],
  },
  'the mark of a sunk bucket is raised': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [...CHARGED_AND_REFUNDED, ...CHARGED_AND_REFUNDED],
    threads: [[check(), giveBack], [refund(1), check(), refund(1)], [check()]],
  },
  'the last unit, where refunds by key have been': {
    forbidden: ANYTHING,
    times: [20, 21],
    before: [...CHARGED_AND_REFUNDED, ...CHARGED_AND_REFUNDED, ...CHARGED_AND_REFUNDED],
    limit: 2,
    threads: [[check(1, 2)], [check(), check()]],
  },
  'a penalty among decisions': {
    forbidden: ANYTHING,
    times: [20, 21],
    before: [[20, check()]],
    limit: 3,
    threads: [[check()], [penalize(2)], [check(1, 2)]],
  },
  'a penalty beyond the largest count, against a sum': {
    forbidden: ANYTHING,
    times: [20, 22],
    before: [[20, penalize(2 ** 22 - 2)]],
    limit: 2,
    threads: [[check()], [penalize(1)]],
  },
  'two block one key': {
    forbidden: AMONG_REFUNDS,
    times: [20, 21, 22, 24],
    before: [[20, check()]],
    limit: 3,
    threads: [[block(1)], [block(3)], [check(), check()]],
  },
  'a key is blocked while its way is claimed for another blocked key': {
    forbidden: AMONG_REFUNDS,
    onFull: 'deny',
    times: [20, 23],
    homes: { 9: [1, 0] },
    before: [
      [19, { do: 'lose', key: 9 }],
      [20, check()],
    ],
    threads: [[block(1)], [block(5, 2), check(2)]],
    restKeys: [],
  },
  'a clear among decisions': {
    forbidden: AMONG_REFUNDS,
    times: [20, 21],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [clear], [check(1, 2)]],
  },
  'a block, an admission and its end': {
    forbidden: AMONG_REFUNDS,
    times: [20, 21, 23],
    before: [[20, check()]],
    limit: 3,
    threads: [[check(), check()], [block(2), unblock], [check()]],
  },
  'one unblocks, another blocks': {
    forbidden: AMONG_REFUNDS,
    times: [20, 21],
    before: [[18, check()]],
    threads: [[unblock], [check(), block(5), check()], [check()]],
  },
  'a block runs out among decisions': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [block(1), check()], [check()]],
  },
  'the limit changes among decisions': {
    forbidden: ANYTHING.filter((what) => what !== 'early'),
    times: [20],
    before: [[20, check()]],
    limit: 3,
    threads: [[check(), check()], [update(2), check()], [check()]],
  },
  'a thread joins among decisions': {
    forbidden: ANYTHING,
    times: [20, 21],
    before: [[20, check()]],
    limit: 2,
    threads: [[check()], [{ do: 'attach' }, check()], [check()]],
  },
  'a penalty while its empty way is claimed': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest'),
    onFull: 'deny',
    times: [20],
    homes: { 9: [1, 0] },
    before: [
      [19, { do: 'lose', key: 9 }],
      [20, block(1)],
      [20, unblock],
    ],
    limit: 2,
    threads: [[penalize(1)], [check(2), check(2)]],
    restKeys: [],
  },
}
