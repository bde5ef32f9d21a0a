// Changes of a rule's window, and the conversion of cells. A window has one granule of a second at first,
// unless the scenario says otherwise. A thread reads each record that it goes on with, word by word, so most
// changes come before the threads start.
import {
  byHandle,
  change,
  check,
  checkLate,
  type Forbidden,
  giveBack,
  type Op,
  readClock,
  refund,
  type Scenario,
} from '../scenario.js'
import { ANYTHING } from './deciding.js'

const except = (...what: readonly Forbidden[]) => ANYTHING.filter((one) => !what.includes(one))
/** A charge that overlaps a refund by key may stay for a window. */
const AMONG_REFUNDS = except('refused at rest', 'early')

/** All threads count by the present record, and none gives units back. */
const ONCE: readonly Forbidden[] = [...ANYTHING, 'counted twice']

/** A displaced key may return to less than it had used; the key that displaced it inherits its counts. */
const OF_DISPLACED: readonly Forbidden[] = ['two cells', 'stuck way', 'fresh quota', 'hang', 'wrong cell']
/** Two keys in the only two ways of a third one. */
const FULL: Pick<Scenario, 'homes'> & Required<Pick<Scenario, 'before'>> = {
  homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
  before: [
    [20, check(1)],
    [20, check(2)],
  ],
}

const penalize = (cost: number): Op => ({ do: 'penalize', key: 1, cost })
const block = (seconds: number, key = 1): Op => ({ do: 'block', key, ms: seconds * 1_000 })
const clear: Op = { do: 'clear', key: 1 }
const clearAll: Op = { do: 'clear all' }
const peek: Op = { do: 'peek', key: 1, cost: 1 }
const batch: Op = { do: 'batch', keys: [1, 1] }
const update = (limit: number): Op => ({ do: 'update', limit })
const attach: Op = { do: 'attach' }

/** What one thread does while another one changes the window and then converts the key's cell. */
const STALE: Readonly<Record<string, { forbidden?: readonly Forbidden[]; ops: readonly Op[] }>> = {
  'a decision': { ops: [check()] },
  'a batch': { ops: [batch] },
  'a look': { ops: [peek] },
  'a penalty': { ops: [penalize(1)] },
  'a refund by key': { forbidden: AMONG_REFUNDS, ops: [refund(1)] },
  'a decision that is given back': { forbidden: AMONG_REFUNDS, ops: [check(), giveBack] },
  'a block': { forbidden: AMONG_REFUNDS, ops: [block(1)] },
  'a new limit': { forbidden: AMONG_REFUNDS, ops: [update(3)] },
  'the clearing of a key': { forbidden: AMONG_REFUNDS, ops: [clear] },
}

/** What two threads do at once on a key whose cell counts by the old record. */
const CONVERTING: Readonly<Record<string, { forbidden?: readonly Forbidden[]; ops: readonly Op[] }>> = {
  'a decision': { ops: [check()] },
  'a batch': { ops: [batch] },
  'a decision by a handle': { ops: [byHandle(), byHandle()] },
  'a look': { ops: [peek] },
  'a penalty': { ops: [penalize(1)] },
  'a refund by key': { forbidden: AMONG_REFUNDS, ops: [refund(1)] },
  'a decision that is given back': { forbidden: AMONG_REFUNDS, ops: [check(), giveBack] },
  'a block': { forbidden: AMONG_REFUNDS, ops: [block(1)] },
  'the clearing of all keys': { forbidden: AMONG_REFUNDS, ops: [clearAll] },
  'a new thread': { ops: [attach, check()] },
}

/** The windows before and after: granules and their length in seconds. Cells are made for three granules. */
const WINDOWS = {
  shorter: { from: change(3), to: change(1) },
  longer: { from: change(1), to: change(3) },
  'as long, coarser': { from: change(2), to: change(1, 2) },
  'as long, finer': { from: change(1, 2), to: change(2) },
  'longer, of coarser granules': { from: change(1), to: change(1, 2) },
  'shorter, of coarser granules': { from: change(3), to: change(1, 2) },
  'longer, of finer granules': { from: change(1, 2), to: change(3) },
  'shorter, of finer granules': { from: change(1, 3), to: change(1) },
} as const

function named<T>(
  of: Readonly<Record<string, T>>,
  name: (one: string) => string,
  make: (one: T) => Scenario,
) {
  return Object.fromEntries(Object.entries(of).map(([one, value]) => [name(one), make(value)]))
}

export const changing: Readonly<Record<string, Scenario>> = {
  ...named(
    STALE,
    (one) => `a change beside ${one}`,
    ({ forbidden = ANYTHING, ops }) => ({
      forbidden,
      times: [20, 22],
      before: [[20, check()]],
      limit: 2,
      threads: [[change(1, 2), check()], ops],
    }),
  ),
  ...named(
    CONVERTING,
    (one) => `a conversion beside ${one}`,
    ({ forbidden = ONCE, ops }) => ({
      forbidden,
      times: [21, 23],
      before: [
        [20, check()],
        [20, change(1, 2)],
      ],
      limit: 3,
      threads: [[check(1, 2)], ops],
    }),
  ),
  ...named(
    WINDOWS,
    (one) => `a key is converted by two threads, to a window that is ${one}`,
    ({ from, to }) => ({
      forbidden: ONCE,
      times: [20, 21, 22],
      buckets: 3,
      before: [
        [18, from],
        [18, check()],
        [19, check()],
        [19, to],
      ],
      limit: 3,
      threads: [[check(1, 2)], [check()]],
    }),
  ),
  ...named(
    WINDOWS,
    (one) => `decisions around a change to a window that is ${one}`,
    ({ from, to }) => ({
      forbidden: ANYTHING,
      times: [20, 21],
      buckets: 3,
      before: [
        [19, from],
        [19, check()],
      ],
      limit: 2,
      threads: [[to], [check(), check()]],
    }),
  ),
  'a block ends for another while its key is converted': {
    forbidden: AMONG_REFUNDS,
    times: [20, 22],
    homes: { 1: [0, 1], 2: [1, 0] },
    before: [
      [20, check()],
      [20, block(60)],
    ],
    limit: 2,
    threads: [[change(1, 2), check()], [block(90, 2)]],
    restKeys: [],
  },
  'a block ends for another while its key is converted again': {
    forbidden: AMONG_REFUNDS,
    times: [20, 22],
    homes: { 1: [0, 1], 2: [1, 0] },
    before: [
      [20, check()],
      [20, block(60)],
      [20, change(1, 2)],
    ],
    limit: 2,
    threads: [[change(1, 3), check()], [block(90, 2)]],
    restKeys: [],
  },
  'a conversion beside a check by an older reading': {
    forbidden: ANYTHING,
    times: [20, 22],
    buckets: 2,
    before: [
      [19, check()],
      [20, change(1)],
    ],
    threads: [[check()], [check()]],
  },
  'a check by an older reading in a converted cell': {
    forbidden: ANYTHING,
    times: [20, 21, 22],
    buckets: 2,
    before: [
      [19, check()],
      [20, change(1)],
    ],
    limit: 2,
    threads: [[readClock, checkLate(1, 2)], [check()]],
  },
  'a change and a look beside a decision': {
    forbidden: ANYTHING,
    times: [20, 22],
    before: [[20, check()]],
    limit: 2,
    threads: [[change(1, 2), peek, check()], [check()]],
  },
  'a conversion by an older reading than that of the last charge': {
    forbidden: ANYTHING,
    times: [20, 22, 24],
    threads: [
      [readClock, checkLate(), check()],
      [check(), change(1, 2)],
    ],
  },
  'a change beside the first decisions of a key': {
    forbidden: ANYTHING,
    times: [20, 22],
    threads: [[change(1, 2), check()], [check()]],
  },
  'a change beside a decision after the old window': {
    forbidden: ANYTHING,
    times: [20, 22, 24],
    before: [[20, check()]],
    limit: 2,
    threads: [[change(1, 2), check(), check()], [check()]],
  },
  'a change to a longer window while a limiter decides': {
    forbidden: ANYTHING,
    times: [20, 22],
    buckets: 3,
    before: [
      [20, change(1)],
      [20, check()],
    ],
    limit: 2,
    further: [],
    threads: [[change(3), check()], [check()]],
  },
  'a shorter window, and a longer one': {
    forbidden: ANYTHING,
    times: [21, 22],
    buckets: 3,
    before: [
      [18, change(3)],
      [18, check(1, 2)],
      [18, change(1)],
    ],
    limit: 2,
    threads: [[check(), change(3), check()], [check()]],
  },
  'two changes at once': {
    forbidden: ANYTHING,
    times: [20, 22],
    buckets: 2,
    before: [[20, check()]],
    limit: 2,
    threads: [
      [change(1), check()],
      [change(1, 2), check()],
    ],
  },
  'a conversion that is overtaken by another change': {
    forbidden: ANYTHING,
    times: [20, 30],
    before: [
      [20, change(1, 4)],
      [20, check()],
      [20, change(1)],
    ],
    limit: 2,
    threads: [[check()], [change(1, 16), check()]],
  },
  'a new key among cells of two records': {
    forbidden: OF_DISPLACED,
    times: [20, 21],
    ...FULL,
    threads: [[change(1, 2), check(1)], [check(3)]],
    restKeys: [],
  },
  'a longer window while a cell is converted for a new key': {
    forbidden: ['over', 'two cells', 'stuck way', 'hang', 'wrong cell'],
    times: [20, 22],
    buckets: 3,
    ...FULL,
    before: [
      [19, change(2)],
      [19, check(1, 2)],
      [19, check(2)],
      [19, change(1)],
    ],
    limit: 2,
    threads: [[check(3)], [change(3), check(1)]],
    restKeys: [],
  },
  'a conversion beside a new key that displaces it': {
    forbidden: OF_DISPLACED,
    times: [20, 22],
    ...FULL,
    before: [...FULL.before, [20, change(1, 2)]],
    threads: [[check(1)], [check(3)]],
    restKeys: [],
  },
  'a conversion beside a new key that finds no room': {
    forbidden: AMONG_REFUNDS,
    times: [20, 22],
    ...FULL,
    before: [...FULL.before, [20, change(1, 2)]],
    onFull: 'deny',
    threads: [[check(1)], [check(3), check(3)]],
    restKeys: [],
  },
}
