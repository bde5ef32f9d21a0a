// Windows that begin at a key's first charge, in a cell without charges that has been there before.
import { check, checkLate, type Forbidden, type Op, readClock, type Scenario } from '../scenario.js'

/** Another thread may have the window begin at its own reading: so the ledger does not know to the tick when it ends. */
const FORBIDDEN: readonly Forbidden[] = ['over', 'wrong cell', 'two cells', 'stuck way', 'locked out', 'hang']
const BLOCKED: readonly Op[] = [
  { do: 'block', key: 1, ms: 60_000 },
  { do: 'unblock', key: 1 },
]
const OF_FIRST = { algorithm: 'fixed-window', align: 'first', buckets: 3, forbidden: FORBIDDEN } as const
const before = BLOCKED.map((op) => [19, op] as const)

export const beginning: Readonly<Record<string, Scenario>> = {
  'first charges of a key that was blocked': {
    ...OF_FIRST,
    small: true,
    times: [20, 21, 22],
    before,
    threads: [[check()], [check()]],
  },
  'three first charges': {
    ...OF_FIRST,
    times: [20, 21, 23],
    before,
    threads: [[check()], [check()], [check()]],
  },
  'first charges, and what is left of the limit': {
    ...OF_FIRST,
    times: [20, 21, 22, 23],
    limit: 2,
    before,
    threads: [[check(), check()], [check()], [check()]],
  },
  'a first charge by an old reading': {
    ...OF_FIRST,
    times: [20, 21, 22],
    limit: 2,
    before,
    threads: [
      [readClock, checkLate()],
      [check(), check()],
    ],
  },
  'a first charge, and the window after it': {
    ...OF_FIRST,
    times: [20, 21, 24],
    before,
    threads: [[check()], [check(), check()]],
  },
  'first charges with a clock that is ahead': {
    ...OF_FIRST,
    times: [20, 21],
    limit: 2,
    before,
    ahead: [0, 1],
    threads: [[check(), check()], [check()]],
  },
}
