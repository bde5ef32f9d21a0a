// Keys that take a way: a free one, an expired one, or the one of another key.
import { byHandle, check, checkLate, type Op, readClock, type Scenario } from '../scenario.js'
import { ANYTHING } from './deciding.js'

/** A key whose way is lost, so that the others have one way less. */
const LOST_KEY = 9
const loseWay: Op = { do: 'lose', key: LOST_KEY }
/** There are more keys than ways: one of them is refused for lack of room. */
const WITHOUT_ROOM = ANYTHING.filter((what) => what !== 'refused at rest')
/**
 * A displaced key may return to less than it had used; the key that displaced it may use no more than the
 * room left.
 */
const EXCEPT_DISPLACED = ANYTHING.filter(
  (what) => what !== 'refused at rest' && what !== 'early' && what !== 'lost charge',
)

export const inserting: Readonly<Record<string, Scenario>> = {
  'two insert one new key': {
    forbidden: ANYTHING,
    times: [20],
    threads: [[check()], [check()]],
  },
  'two insert one new key, each another way': {
    // One thread finds way 0 taken, the other finds it expired.
    forbidden: ANYTHING,
    onFull: 'deny',
    times: [20, 23],
    before: [[20, check(2)]],
    threads: [[check()], [check()]],
  },
  'three insert one new key': {
    forbidden: ANYTHING,
    times: [20],
    limit: 2,
    threads: [[check()], [check()], [check()]],
  },
  'an expired way is claimed while its old key decides': {
    forbidden: WITHOUT_ROOM,
    onFull: 'deny',
    times: [20, 23],
    homes: { [LOST_KEY]: [1, 0] },
    before: [
      [19, loseWay],
      [20, check()],
    ],
    threads: [[check()], [check(2), check(2)]],
    restKeys: [],
  },
  'a key comes back to its expired way while another one takes it': {
    // Both ways are expired: the other key has room in the second one.
    forbidden: [...WITHOUT_ROOM, 'displaced'],
    times: [23],
    before: [
      [20, check()],
      [20, check(2)],
    ],
    threads: [[check()], [check(3)]],
    restKeys: [],
  },
  'an empty way is claimed while its key decides': {
    forbidden: EXCEPT_DISPLACED,
    times: [20],
    homes: { [LOST_KEY]: [1, 0] },
    before: [
      [19, loseWay],
      [20, { do: 'block', key: 1, ms: 1_000 }],
      [20, { do: 'unblock', key: 1 }],
    ],
    threads: [[check()], [check(2), check(2)]],
    restKeys: [],
  },
  'by a handle whose way was claimed for another key': {
    forbidden: WITHOUT_ROOM,
    times: [20, 23],
    homes: { [LOST_KEY]: [1, 0] },
    before: [[19, loseWay]],
    threads: [
      [byHandle(), byHandle()],
      [check(2), check(2)],
    ],
    onFull: 'deny',
    restKeys: [],
  },
  'a way lost to another key and won back': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [21, 23],
    homes: { [LOST_KEY]: [1, 0] },
    before: [
      [19, loseWay],
      [20, check()],
    ],
    threads: [[readClock, checkLate()], [check()], [check(2)]],
    restKeys: [],
  },
  'a way lost and won back, beside a clock that is a granule behind': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [22],
    ahead: [-1, 0, 0],
    homes: { [LOST_KEY]: [1, 0] },
    before: [
      [19, loseWay],
      [20, check()],
    ],
    threads: [[check()], [check()], [check(2)]],
    restKeys: [],
  },
  'an empty way is claimed, beside a clock that is a granule behind': {
    forbidden: WITHOUT_ROOM.filter((what) => what !== 'early'),
    onFull: 'deny',
    times: [21],
    ahead: [-1, 0, 0],
    ways: 3,
    homes: { 1: [0, 1], 2: [0, 2], [LOST_KEY]: [2, 0] },
    before: [
      [18, loseWay],
      [19, check()],
    ],
    threads: [
      [check()],
      [
        { do: 'block', key: 1, ms: 1_000 },
        { do: 'unblock', key: 1 },
      ],
      [check(2)],
    ],
    restKeys: [],
  },
  'two cells of one key, one after the other': {
    forbidden: WITHOUT_ROOM,
    onFull: 'deny',
    times: [20, 23],
    homes: { 1: [0, 1], 2: [0, 1] },
    threads: [[check()], [check()], [check(2)]],
    restKeys: [],
  },
  'two keys swap ways': {
    forbidden: ANYTHING,
    times: [20, 22],
    homes: { 1: [1, 0], 2: [0, 1] },
    before: [[19, check()]],
    threads: [[check()], [check(2), check(2)]],
    restKeys: [1, 2],
  },
  'three keys, one stale name': {
    forbidden: WITHOUT_ROOM,
    onFull: 'deny',
    times: [24],
    ways: 3,
    homes: { 1: [0, 1], 2: [0, 2], 3: [0, 2] },
    before: [[20, check()]],
    threads: [[check(2)], [check(1)], [check(3), check(3)]],
    restKeys: [],
  },
  'three keys for two ways, one of them stale': {
    forbidden: EXCEPT_DISPLACED.filter((what) => what !== 'over' && what !== 'low total'),
    times: [24],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(1)],
      [24, check(2)],
    ],
    threads: [[check(2)], [check(1)], [check(3)]],
    restKeys: [],
  },
  'a live way is evicted': {
    forbidden: EXCEPT_DISPLACED,
    times: [20, 21],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(1)],
      [20, check(2)],
    ],
    threads: [[check(3)], [check(3), check(3)]],
    restKeys: [],
  },
  'a live way is evicted while its key decides': {
    forbidden: EXCEPT_DISPLACED.filter((what) => what !== 'over' && what !== 'low total'),
    times: [20, 21],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(1)],
      [20, check(2, 2)],
    ],
    limit: 2,
    threads: [[check(1)], [check(3), check(3)]],
    restKeys: [],
  },
  'a live way is evicted, and its counts are taken over': {
    forbidden: ['two cells', 'stuck way', 'fresh quota'],
    times: [20, 21],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(1)],
      [20, check(2)],
    ],
    threads: [[check(3)], [check(1)]],
    restKeys: [],
  },
  'a blocked key is not displaced': {
    forbidden: ANYTHING.filter((what) => what !== 'refused at rest' && what !== 'early'),
    times: [20, 23],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, { do: 'block', key: 1, ms: 60_000 }],
      [20, check(2)],
    ],
    threads: [[check(3)], [check(1), check(1)]],
    restKeys: [],
  },
  'a table that is full of live keys denies': {
    forbidden: WITHOUT_ROOM,
    onFull: 'deny',
    times: [20, 21],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(1)],
      [20, check(2)],
    ],
    threads: [[check(3)], [check(1), check(1)]],
    restKeys: [],
  },
  'a full table denies': {
    forbidden: EXCEPT_DISPLACED,
    onFull: 'deny',
    times: [20, 23],
    homes: { 1: [0, 1], 2: [1, 0], 3: [0, 1] },
    before: [
      [20, check(1)],
      [20, check(2)],
    ],
    threads: [[check(3)], [check(1)], [check(2)]],
    restKeys: [],
  },
}
