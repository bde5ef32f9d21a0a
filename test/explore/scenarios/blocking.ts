// Eviction of blocks. A key has two ways here, and one of them may be blocked.
import { check, type Op, refund, type Scenario } from '../scenario.js'
import { ANYTHING } from './deciding.js'

const block = (key: number, granules: number): Op => ({ do: 'block', key, ms: granules * 1_000 })
const unblock = (key: number): Op => ({ do: 'unblock', key })
/** A displaced key may return to less than it had used; the key that displaced it inherits its counts. */
const EXCEPT_DISPLACED = ANYTHING.filter(
  (what) => !['over', 'low total', 'lost charge', 'early', 'refused at rest'].includes(what),
)
/** A decision that overlaps the end of a block may be refused, by the block or by the sum. */
const AMONG_BLOCKS = ANYTHING.filter((what) => what !== 'early' && what !== 'refused at rest')
/** A key that finds both of its ways blocked by two other keys, each with another second way. */
const THREE_WAYS = { ways: 3, homes: { 1: [0, 1], 2: [2, 1], 3: [0, 2] } } as const
const BOTH_BLOCKED: Scenario['before'] = [
  [20, block(1, 60)],
  [20, block(2, 90)],
]

export const blocking: Readonly<Record<string, Scenario>> = {
  'two block two keys, and one block stays': {
    forbidden: AMONG_BLOCKS,
    times: [20],
    homes: { 1: [0, 1], 2: [1, 0] },
    threads: [[block(1, 60)], [block(2, 90)]],
    restKeys: [],
  },
  'a block ends for another while its key decides': {
    forbidden: AMONG_BLOCKS,
    times: [20, 21],
    limit: 2,
    homes: { 1: [0, 1], 2: [1, 0] },
    before: [
      [20, check()],
      [20, block(1, 60)],
    ],
    threads: [[check(), check()], [block(2, 90)], [refund(1)]],
    restKeys: [],
  },
  'a block ends for another while it is changed': {
    forbidden: AMONG_BLOCKS,
    times: [20],
    homes: { 1: [0, 1], 2: [1, 0] },
    before: [[20, block(1, 60)]],
    threads: [[block(1, 120)], [block(2, 90)], [unblock(1)]],
    restKeys: [],
  },
  'a blocked way goes to a key that is blocked': {
    forbidden: EXCEPT_DISPLACED,
    times: [20, 21],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(2)],
      [20, block(1, 60)],
    ],
    limit: 2,
    threads: [[block(3, 60)], [check(), check()]],
    restKeys: [],
  },
  'a key blocked again while its way goes to another': {
    forbidden: EXCEPT_DISPLACED,
    times: [20],
    homes: { 1: [0, 1], 3: [0, 1], 9: [1, 0] },
    before: [
      [19, { do: 'lose', key: 9 }],
      [20, block(1, 60)],
    ],
    threads: [[block(1, 120)], [block(3, 60)]],
    restKeys: [],
  },
  'a blocked way goes to a new key while its own decides': {
    forbidden: EXCEPT_DISPLACED.filter((what) => what !== 'too many blocks'),
    times: [20, 21],
    ...THREE_WAYS,
    before: BOTH_BLOCKED,
    limit: 2,
    threads: [[check(3), check(3)], [check()], [unblock(2)]],
    restKeys: [],
  },
  'an expired blocked way goes to a new key': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'too many blocks'),
    onFull: 'deny',
    times: [20, 23],
    ...THREE_WAYS,
    before: BOTH_BLOCKED,
    threads: [[check(3)], [check(), check()]],
    restKeys: [],
  },
}
