// Scenarios of a rule whose window changes while it runs (`conversion.mjs`). All are explored to the end. Where
// that would be too much, a thread starts in the middle of its operation (`converts`, `refused`, `givesBack`).
import { LIVE } from './words.mjs'

const check = (key, cost = 1) => ({ kind: 'check', key, cost })
const refund = (key, cost) => ({ kind: 'refund', key, cost })
const borrow = (key, cost = 1) => ({ kind: 'borrow', key, cost })
const block = (key, cost) => ({ kind: 'block', key, cost })
const change = (granule, limit = 2, granules = 1) => ({ kind: 'change', granule, granules, limit })
/** An operation of a thread that has read its clock and CURRENT before the change. */
const stale = (op, phase) => ({ ...op, record: 0, phase })
/** An operation of a thread of the new record, whose reading is an old one. */
const early = (op, reading = 0) => ({ ...op, record: 1, early: reading })
/** A thread of the new record that has not found its key under it. */
const converts = { ...early(check(1), 2), phase: 'miss' }
/** A thread of the old record that has found its key, and no room. */
const refused = { ...stale(check(1), 'full'), w: 0, now: 2, v: (LIVE << 4) | 2, e: 2 }
/** Gives back one of the units that key 1 has used at the change. */
const givesBack = { ...stale(borrow(1), 'giveBack'), w: 0, e: 2, r: 0 }
const endBlock = (key) => ({ kind: 'end block', key })
const endAny = { kind: 'end any' }
/** A blocked cell, until the clock reads `until`. */
const blocked = (units, until, tick = 2) => [1, units, tick, 0, until]
const used = (units, tick = 2) => [1, units, tick]

const growing = { records: 2, granule: 1, limit: 2, laps: 64 }
/** The rule has just changed. */
const grown = { ...growing, changed: change(2) }
const shrunk = { ...growing, granule: 2, start: 4, changed: change(1) }
/** A window that is short has become the present one, and does not cover what the long one before it still counts. */
const back = { records: 3, granule: 4, limit: 2, start: 10, laps: 64, changed: change(1) }
export const conversions = {
  'a shorter window, and a longer one': {
    ...back,
    init: [used(1, 1)],
    threads: [[check(1), change(4), check(1)], [check(1)]],
    clock: 1,
  },
  'a past that the shorter window counts, too': {
    ...back,
    start: 9,
    init: [used(1, 1)],
    threads: [[check(1), change(4), check(1)]],
    once: true,
    clock: 1,
  },
  'a longer window carries what no earlier one counts any more': {
    records: 4,
    granule: 8,
    limit: 3,
    start: 18,
    laps: 64,
    changed: change(1, 3),
    init: [used(1, 1)],
    threads: [[check(1), change(2, 3), check(1), change(8, 3), check(1)]],
    clock: 3,
  },
  'a shorter window and a longer one, and a death': {
    ...back,
    init: [used(2, 1)],
    threads: [[check(1), change(4), check(1)], [check(1)]],
    clock: 0,
    deaths: true,
  },
  'a longer window while two convert to a shorter one': {
    ...back,
    init: [used(2, 1)],
    threads: [[change(4), check(1)], [check(1)], [check(1)]],
    clock: 0,
  },
  'a window grows among decisions': {
    ...growing,
    init: [used(1)],
    threads: [[change(2), check(1)], [check(1)]],
    clock: 2,
  },
  'a window grows much among decisions': {
    ...growing,
    init: [used(0)],
    threads: [[change(4), check(1)], [check(1)]],
    clock: 3,
  },
  'a window shrinks among decisions': {
    ...growing,
    granule: 2,
    start: 4,
    init: [used(1)],
    threads: [[change(1), check(1)], [check(1)]],
    clock: 2,
  },
  'a conversion and a late decision': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 2,
  },
  'a conversion and a late decision in a new tick': {
    ...grown,
    init: [used(1, 1)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 1,
  },
  'a conversion and a late refusal': {
    ...grown,
    init: [used(2)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 1,
  },
  'two convert at once': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [check(1)]],
    once: true,
    clock: 1,
  },
  'two convert at once, and a late decision': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [check(1)], [stale(check(1))]],
    clock: 0,
  },
  'a conversion into a shorter window and a late decision': {
    ...shrunk,
    init: [used(1)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 2,
  },
  'a death while converting': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 1,
    deaths: true,
  },
  'a death while two convert': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [check(1)]],
    clock: 1,
    deaths: true,
  },
  'a key that two records insert': {
    ...grown,
    limit: 1,
    changed: change(2, 1),
    ways: 2,
    threads: [[check(1)], [stale(check(1))]],
    clock: 0,
    tries: 1,
  },
  'a second change while one converts': {
    ...grown,
    records: 3,
    init: [used(1)],
    threads: [[change(3), check(1)], [check(1)]],
    clock: 0,
  },
  'a second change before a late count': {
    ...shrunk,
    records: 3,
    init: [used(2)],
    threads: [[change(6)], [check(1)]],
    clock: 4,
  },
  'a death, and a second change': {
    ...grown,
    records: 3,
    init: [used(1)],
    threads: [[change(3), check(1)], [check(1)]],
    clock: 0,
    deaths: true,
  },
  'a refund and a decision, both by the new record': {
    ...grown,
    init: [used(2)],
    threads: [[check(1)], [refund(1, 2)]],
    clock: 1,
  },
  'two changes at once': {
    ...growing,
    records: 4,
    init: [used(1)],
    threads: [
      [change(2), check(1)],
      [change(3), check(1)],
    ],
    clock: 0,
  },
  'a refund while one converts': {
    ...grown,
    init: [used(2)],
    threads: [[check(1)], [stale(refund(1, 2))]],
    clock: 1,
  },
  'an admission given back while one converts': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [stale(borrow(1))]],
    clock: 2,
  },
  'an admission given back while one converts and one is refused': {
    ...grown,
    init: [used(2)],
    threads: [[converts], [refused], [givesBack]],
    clock: 0,
  },
  'a second change while two convert': {
    ...shrunk,
    records: 3,
    start: 2,
    init: [used(1, 1)],
    threads: [[converts], [converts], [change(4)]],
    clock: 2,
  },
  'a block while one converts': {
    ...grown,
    init: [used(1)],
    threads: [[check(1)], [stale(block(1, 2))]],
    clock: 2,
    gaps: [6],
    idle: 10,
  },
  'a blocked key converted': {
    ...grown,
    init: [blocked(1, 5)],
    threads: [[check(1)], [stale(block(1, 6))]],
    clock: 1,
    gaps: [10],
    idle: 16,
  },
  'a blocked key that two convert': {
    ...grown,
    init: [blocked(2, 3)],
    threads: [[check(1)], [check(1)]],
    clock: 0,
    gaps: [10],
    idle: 16,
  },
  'a block that ends while one converts': {
    ...grown,
    init: [blocked(2, 9)],
    threads: [[check(1)], [stale(endBlock(1)), check(1)]],
    clock: 1,
    gaps: [10],
    idle: 16,
  },
  'a block that ends for another while one converts': {
    ...grown,
    init: [blocked(2, 9)],
    threads: [[check(1), check(1)], [endAny]],
    clock: 1,
    gaps: [10],
    idle: 16,
  },
  'fewer granules, while a block ends for another': {
    ...growing,
    longest: 2,
    granules: 2,
    granule: 2,
    start: 6,
    changed: change(6),
    init: [blocked(2, 12, 1)],
    threads: [[check(1)], [stale(check(1))], [endAny]],
    clock: 0,
    gaps: [14],
    idle: 30,
  },
  'fewer granules': {
    ...growing,
    longest: 2,
    granules: 2,
    start: 3,
    changed: change(2),
    init: [used(1)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 1,
  },
  'more granules': {
    ...growing,
    longest: 2,
    changed: change(1, 2, 2),
    init: [used(1)],
    threads: [[check(1)], [stale(check(1))]],
    clock: 1,
  },
  'another key takes the way of an old record': {
    ...grown,
    ways: 1,
    init: [used(1)],
    threads: [[check(1)], [check(2), check(2)]],
    clock: 4,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a late thread inserts in a way that was converted': {
    ...grown,
    ways: 1,
    limit: 1,
    changed: change(2, 1),
    init: [used(0)],
    threads: [[check(1)], [stale(check(2), 'choose'), check(2)]],
    clock: 0,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a way given up while the window changes': {
    ...growing,
    ways: 1,
    limit: 1,
    init: [used(1)],
    threads: [[change(2, 1), check(1)], [check(2)]],
    clock: 0,
    evictLive: true,
    inherits: true,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a way claimed while its key is converted': {
    ...growing,
    ways: 1,
    limit: 1,
    init: [used(0)],
    threads: [
      [change(2, 1), check(1)],
      [check(2), check(2)],
    ],
    clock: 0,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a blocked way claimed while its key is converted': {
    ...growing,
    ways: 1,
    limit: 1,
    givesWay: true,
    evictLive: true,
    inherits: true,
    init: [blocked(0, 9)],
    threads: [
      [change(2, 1), check(1)],
      [check(2), check(2)],
    ],
    clock: 0,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a key inserted while the window changes': {
    ...growing,
    limit: 1,
    ways: 2,
    threads: [[change(2, 1), check(1)], [check(1)]],
    clock: 0,
    tries: 1,
  },
  'another key takes over the counts of an old record': {
    ...grown,
    ways: 1,
    limit: 1,
    changed: change(2, 1),
    init: [used(1)],
    threads: [[check(2)], [check(1)]],
    clock: 1,
    evictLive: true,
    inherits: true,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'an older reading decides after a conversion': {
    ...grown,
    init: [used(2)],
    threads: [[check(1)], [early(check(1), 3)]],
    clock: 5,
  },
  'an old reading converts': {
    ...grown,
    init: [used(1)],
    threads: [[early(check(1))], [stale(check(1))]],
    clock: 1,
  },
  'a change that takes long': {
    ...growing,
    init: [used(0)],
    threads: [[change(4)], [check(1)]],
    clock: 4,
  },
  'a full key that rests': {
    ...growing,
    limit: 1,
    init: [used(0)],
    threads: [[change(2, 1)], [check(1)]],
    once: true,
    clock: 0,
  },
}
