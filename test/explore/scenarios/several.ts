// Decisions by several rules, by groups, and reservations. The scenarios play the limiters and groups of the
// package, with an arena for each rule in one buffer. `RulesEngine` decides for a limiter of all rules,
// `InlineGroup` for a group, and `InlineReservation` settles. `check` uses the limiter of all rules.
import {
  cancel,
  check,
  checkBy,
  commit,
  type Forbidden,
  giveBack,
  type Op,
  refund,
  reserve,
  type Scenario,
} from '../scenario.js'
import { ANYTHING } from './deciding.js'

const ALL: readonly Forbidden[] = [...ANYTHING, 'half charged']
/** A charge that overlaps a refund by key may stay for a window. */
const AMONG_REFUNDS = ALL.filter((what) => what !== 'refused at rest' && what !== 'early')
/** A key may be blocked, or lose its way, between the admissions of the first and the last rule. */
const AMONG_BLOCKS = AMONG_REFUNDS.filter((what) => what !== 'past its block')
const clear: Op = { do: 'clear', key: 1 }
const clearAll: Op = { do: 'clear all' }
const block = (granules: number): Op => ({ do: 'block', key: 1, ms: granules * 1_000 })
const unblock: Op = { do: 'unblock', key: 1 }
const first = { rule: 0 }
const second = { rule: 1 }
/** The bucket's mark is 1 after these operations, 2 if they are repeated, then 1 again. */
const CHARGED_AND_REFUNDED: NonNullable<Scenario['before']> = [
  [20, check()],
  [20, refund(1)],
]

export const several: Readonly<Record<string, Scenario>> = {
  'two rules: two admit on the last units': {
    forbidden: ALL,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 2 }],
    threads: [[check()], [check()]],
  },
  'two rules: their last units overlap': {
    forbidden: ALL,
    times: [20],
    before: [
      [20, checkBy(first)],
      [20, checkBy(second)],
    ],
    limit: 3,
    further: [{ limit: 2 }],
    threads: [[check(1, 2)], [check()]],
  },
  'two rules: three admit on the last units': {
    forbidden: ALL,
    times: [20],
    before: [[20, check()]],
    limit: 3,
    further: [{ limit: 2 }],
    threads: [[check()], [check()], [check()]],
  },
  'two rules: the second refuses, and the first takes its charge back': {
    forbidden: ALL,
    times: [20],
    before: [[20, checkBy(second)]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [check()], [checkBy(first, 1, 2)]],
  },
  'two rules: a refusal while the unit of the second is given back': {
    forbidden: ALL,
    times: [20],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [
      [checkBy(second), giveBack],
      [check(), check()],
    ],
  },
  'two rules: a rollover between the two charges': {
    forbidden: ALL,
    times: [20, 21, 22],
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [check()]],
  },
  'two rules: a rollover before a charge is taken back': {
    forbidden: ALL,
    times: [20, 21],
    before: [[20, checkBy(second)]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [checkBy(first, 1, 2), check()]],
  },
  'two rules: windows of one granule and of three': {
    forbidden: ALL,
    times: [20, 21, 24],
    before: [
      [18, check()],
      [19, check()],
    ],
    limit: 2,
    further: [{ limit: 3, buckets: 3 }],
    threads: [[check()], [check()]],
    gaps: [6],
  },
  'two rules: stalls of many laps': {
    forbidden: ALL,
    times: [20, 22, 20 + 2 * 70 + 1],
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [check()]],
  },
  'three rules, of which the last refuses': {
    forbidden: ALL,
    times: [20],
    before: [[20, checkBy({ rule: 2 })]],
    limit: 2,
    further: [{ limit: 2 }, { limit: 1 }],
    threads: [[check()], [check()]],
  },
  'two rules: a cost above the second limit': {
    small: true,
    forbidden: ALL,
    times: [20],
    limit: 3,
    further: [{ limit: 1 }],
    threads: [[check(1, 2)], [checkBy(first, 1, 3)]],
  },
  'two rules: two insert one new key': {
    forbidden: ALL,
    times: [20],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [check()]],
  },
  'two rules: a key takes the way of another in between': {
    // When the last rule decides, the way of an admission may belong to another key.
    forbidden: ALL.filter((what) => what !== 'wrong cell' && what !== 'refused at rest' && what !== 'early'),
    times: [22],
    ways: 2,
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [check(2), check(3)]],
    restKeys: [],
  },
  'two rules: a refund by key before a charge is taken back': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [...CHARGED_AND_REFUNDED, [20, checkBy(second)]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [refund(1), check()]],
  },
  'two rules: refunds by key turn a mark while a charge is taken back': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [...CHARGED_AND_REFUNDED, ...CHARGED_AND_REFUNDED, [20, checkBy(second)]],
    limit: 1,
    further: [{ limit: 1 }],
    threads: [[check()], [refund(1), checkBy(first), refund(1), checkBy(first)]],
  },
  'two rules: a clear among decisions': {
    forbidden: AMONG_REFUNDS,
    times: [20, 21],
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [clear, check()]],
  },
  'two rules: all keys are cleared among decisions': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [clearAll, check()]],
  },
  'two rules: a block and its end among decisions': {
    forbidden: AMONG_BLOCKS,
    times: [20],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check()], [block(1), unblock, check()]],
  },
  'two rules: an admission given back among decisions': {
    forbidden: ALL,
    times: [20, 21],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[check(), giveBack], [check()]],
  },
  'a group: two admit on the last units': {
    forbidden: ALL,
    times: [20],
    before: [[20, check()]],
    limit: 2,
    further: [{ limit: 2 }],
    threads: [[checkBy('group')], [checkBy('group')]],
  },
  'groups with their members in opposite orders': {
    forbidden: ALL,
    times: [20],
    limit: 1,
    further: [{ limit: 1 }],
    threads: [[checkBy('group')], [checkBy('reversed group')]],
  },
  'groups in opposite orders, and a member alone': {
    forbidden: ALL,
    times: [20],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[checkBy('group')], [checkBy('reversed group')], [checkBy(second)]],
  },
  'a group: three members of which the last refuses': {
    forbidden: ALL,
    times: [20],
    before: [
      [20, checkBy({ rule: 0 })],
      [20, checkBy({ rule: 2 })],
    ],
    limit: 2,
    further: [{ limit: 2 }, { limit: 1 }],
    threads: [[checkBy('group')], [checkBy(second)]],
  },
  'a group: a rollover between the two charges': {
    forbidden: ALL,
    times: [20, 21],
    before: [[20, checkBy(second)]],
    limit: 1,
    further: [{ limit: 1, buckets: 2 }],
    threads: [[checkBy('group')], [checkBy('reversed group')]],
  },
  'a group: a refund by key before a charge is taken back': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: [...CHARGED_AND_REFUNDED, [20, checkBy(second)]],
    limit: 2,
    further: [{ limit: 1 }],
    threads: [[checkBy('group')], [refund(1), checkBy(first)]],
  },
  'a group: an admission given back': {
    forbidden: ALL,
    times: [20],
    limit: 1,
    further: [{ limit: 2 }],
    threads: [[checkBy('group'), giveBack], [checkBy('reversed group')]],
  },
  'a reservation settled by less while another thread decides': {
    forbidden: ALL,
    times: [20, 21],
    limit: 3,
    further: [],
    threads: [[reserve(2), commit(1)], [check(1, 2)]],
  },
  'a reservation settled by more while another thread decides': {
    forbidden: ALL,
    times: [20, 21],
    limit: 3,
    further: [],
    threads: [[reserve(1), commit(3)], [check(1, 2)]],
  },
  'a reservation cancelled among decisions': {
    forbidden: ALL,
    times: [20],
    limit: 2,
    further: [],
    threads: [[reserve(2), cancel], [check()], [check()]],
  },
  'a reservation settled after its window': {
    forbidden: ALL.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20, 22, 20 + 2 * 128],
    limit: 2,
    further: [],
    threads: [[reserve(2), commit(1)], [check(1, 2)]],
  },
  'a reservation and a refund by key': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: CHARGED_AND_REFUNDED,
    limit: 2,
    further: [],
    threads: [
      [reserve(2), commit(1)],
      [refund(1), check()],
    ],
  },
  'a reservation and refunds by key that turn a mark': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    before: CHARGED_AND_REFUNDED,
    limit: 2,
    further: [],
    threads: [
      [reserve(2), commit(1)],
      [refund(2), check(), refund(1), check()],
    ],
  },
  'a reservation and a clear': {
    forbidden: AMONG_REFUNDS,
    times: [20],
    limit: 2,
    further: [],
    threads: [
      [reserve(2), cancel],
      [clear, check()],
    ],
  },
  'two rules: a reservation settled by less': {
    forbidden: ALL,
    times: [20],
    limit: 3,
    further: [{ limit: 2 }],
    threads: [[reserve(2), commit(1)], [check()]],
  },
  'two rules: a reservation settled by more': {
    forbidden: ALL,
    times: [20],
    limit: 3,
    further: [{ limit: 2 }],
    threads: [[reserve(1), commit(2)], [check()]],
  },
  'two rules: a refused reservation': {
    forbidden: ALL,
    times: [20],
    before: [[20, checkBy(second)]],
    limit: 3,
    further: [{ limit: 2 }],
    threads: [[reserve(2), commit(1)], [check()]],
  },
  'a group: reservations in opposite orders': {
    forbidden: ALL,
    times: [20],
    limit: 2,
    further: [{ limit: 2 }],
    threads: [
      [reserve(2, 'group'), commit(1)],
      [reserve(1, 'reversed group'), cancel],
    ],
  },
}
