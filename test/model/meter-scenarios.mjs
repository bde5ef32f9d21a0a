// The scenarios of `meter.mjs`, and the mistakes: for each rule of the protocol a scenario that fails without it.

const check = (cost, key = 1) => ({ kind: 'check', key, cost })
const lend = (cost, key = 1) => ({ kind: 'lend', key, cost })
/** By another limit, of tokens of 2: a bucket of 5 has 3 of them. */
const other = (tokens) => ({ kind: 'check', key: 1, cost: 2 * tokens, full: 6 })
const refund = (cost, key = 1) => ({ kind: 'refund', key, cost })
const penalize = (cost, key = 1) => ({ kind: 'penalize', key, cost })
const block = { kind: 'block', key: 1 }
const from = (time, op) => ({ ...op, from: time })
const hop = (time) => ({ kind: 'hop', key: 1, from: time })
const keptUntil = (time, op) => ({ ...op, until: time })
const every = (length, make) => Array.from({ length }, (_, i) => make(i))

const bucket = {
  'two threads, two each': {
    G: 2,
    threads: [
      [check(2), check(1)],
      [check(2), check(1)],
    ],
    end: 7,
  },
  'three threads, time in steps': { G: 2, threads: [[check(2)], [check(2)], [check(1)]], end: 7 },
  'three threads, long gaps': { threads: [[check(2)], [check(2)], [check(1)]], jumps: [3, 13], end: 16 },
  'long gaps and deaths': {
    G: 2,
    threads: [[check(2), check(1)], [check(2)]],
    jumps: [2, 15],
    end: 19,
    deaths: true,
  },
  'three threads and a death': {
    threads: [[check(2)], [check(1)], [hop(0)]],
    jumps: [4, 15],
    end: 15,
    deaths: true,
  },
  'a burst of 4, ticks of 1': {
    B: 4,
    threads: [[check(3)], [check(2)], [check(4)]],
    jumps: [3, 30],
    end: 3,
  },
  'a burst of 4, a tick as long': {
    B: 4,
    G: 4,
    threads: [[check(3)], [check(4)]],
    jumps: [3, 30],
    end: 33,
  },
  'a larger bucket by another limit': {
    B: 5,
    G: 5,
    threads: [
      [other(2), other(1)],
      [check(1), other(1)],
    ],
    jumps: [1, 5],
    end: 7,
    deaths: true,
  },
  'given back, two each': {
    threads: [
      [lend(2), check(1)],
      [lend(1), check(2)],
    ],
    end: 3,
    deaths: true,
  },
  'given back by three': { threads: [[lend(2)], [lend(1)], [check(2)]], end: 2 },
  'given back after long gaps': { threads: [[lend(2)], [check(2), check(1)]], jumps: [3, 13], end: 16 },
  'given back with ticks of 2': { G: 2, threads: [[lend(2), check(2)], [lend(1)]], end: 5 },
  'given back, and a refund by key': {
    threads: [
      [lend(2), check(1)],
      [refund(2), check(2)],
    ],
    end: 4,
  },
  'two refunds by key': {
    threads: [
      [lend(1), refund(1)],
      [check(1), refund(2)],
    ],
    end: 3,
  },
  'epochs go round by refunds': {
    epochs: 4,
    threads: [
      [keptUntil(1, lend(2)), check(2)],
      [...every(8, (i) => (i % 2 ? check(1) : refund(1))), hop(1)],
    ],
    jumps: [],
    end: 1,
  },
  penalties: {
    threads: [
      [penalize(5), check(1)],
      [penalize(3), check(2)],
    ],
    jumps: [2, 5],
    end: 7,
  },
  'a penalty among decisions': {
    G: 2,
    threads: [[penalize(9), check(2)], [check(1)]],
    jumps: [7, 16],
    end: 23,
    deaths: true,
  },
  'a penalty, and a decision given back': { threads: [[lend(2), check(2)], [penalize(2)]], end: 5 },
  'two keys': { G: 2, threads: [[check(2)], [check(2, 2)], [check(2)]], jumps: [4], tries: 1, end: 8 },
  'two keys, no margin': {
    margin: 0,
    threads: [[check(2)], [check(2, 2)], [check(2)]],
    jumps: [3],
    tries: 1,
    end: 6,
  },
  'two keys, long gaps, a death': {
    threads: [[check(2)], [check(2, 2)]],
    jumps: [4, 15],
    end: 19,
    deaths: true,
  },
  'two keys insert, and time goes on': {
    from: 20,
    threads: [[check(2, 2)], [check(2, 1)]],
    jumps: [4, 15],
    end: 39,
  },
  'two keys, given back': { threads: [[lend(2)], [lend(2, 2)], [check(1)]], jumps: [3], end: 3, tries: 1 },
  'two keys, given back after a refund by key': {
    threads: [[lend(2)], [refund(2), from(2, check(2, 2)), check(1, 2)]],
    end: 3,
  },
  'two keys, to and fro': {
    threads: [[check(2)], [from(1, check(2)), from(5, check(2, 2)), from(9, check(2))]],
    jumps: [],
    end: 9,
  },
  'to and fro, elsewhere': {
    elsewhere: true,
    threads: [[check(2)], [from(1, check(2)), from(5, check(2, 2))]],
    jumps: [],
    end: 5,
  },
  'elsewhere, a way with counts': {
    elsewhere: 'counted',
    threads: [[check(2)], [from(1, check(2)), from(5, check(2, 2))]],
    jumps: [],
    end: 5,
  },
  'a key evicted alive': {
    evicts: true,
    threads: [[lend(2)], [check(2, 2), check(1, 2)]],
    jumps: [2],
    end: 4,
  },
  'hops without an admission': {
    threads: [every(12, (i) => hop(5 * (i + 1) - 1)), [from(0, check(2))]],
    jumps: [],
    end: 60,
  },
  'a stall of one lap': { threads: [[check(2)], every(9, (i) => from(2 * i, check(2)))], jumps: [], end: 20 },
}

const first = { size: 2, limit: 2 }
const clock = { size: 1, limit: 2 }
const one = { size: 2, limit: 1 }
const fixedWindow = {
  'clock, two threads, two each': {
    ...clock,
    threads: [
      [check(2), check(1)],
      [check(1), check(2)],
    ],
    end: 3,
  },
  'clock, three threads': { ...clock, threads: [[check(2)], [check(1)], [check(1)]], end: 2, deaths: true },
  'first, three threads': { ...first, threads: [[check(2)], [check(1)], [check(1)]], end: 3 },
  'first, ticks of 2, three of a window': {
    ...first,
    size: 3,
    G: 2,
    threads: [[check(2), check(1)], [check(1)]],
    jumps: [1, 5],
    end: 15,
    deaths: true,
  },
  'first, long gaps, a death': {
    ...first,
    threads: [[check(2), check(1)], [check(2)]],
    jumps: [2, 7],
    end: 9,
    deaths: true,
  },
  'given back, two each': {
    ...first,
    threads: [
      [lend(2), check(1)],
      [lend(1), check(2)],
    ],
    end: 3,
    deaths: true,
  },
  'given back by three': { ...first, threads: [[lend(2)], [lend(1)], [check(1)]], end: 2 },
  'given back, and a refund by key': {
    ...first,
    threads: [
      [lend(2), check(1)],
      [refund(2), check(2)],
    ],
    end: 3,
  },
  'given back after a block': {
    ...first,
    threads: [
      [lend(2), check(1)],
      [block, lend(1), block],
    ],
    end: 3,
  },
  'given back after a block and a refund by key': {
    ...first,
    threads: [
      [lend(1), check(1)],
      [block, refund(1), check(2)],
    ],
    end: 3,
  },
  'two refunds by key': { ...first, threads: [[lend(1)], [check(1), refund(2)], [refund(1)]], end: 1 },
  'epochs go round by refunds': {
    ...one,
    epochs: 4,
    threads: [
      [keptUntil(1, lend(1)), check(1)],
      [...every(8, (i) => (i % 2 ? check(1) : refund(1))), hop(1)],
    ],
    jumps: [],
    end: 1,
  },
  'a refund that counts itself late': {
    size: 3,
    limit: 2,
    epochs: 4,
    threads: [
      [check(2), from(1, refund(2))],
      [keptUntil(5, { ...from(3, lend(2)), after: 1, sets: 4 })],
      [...every(8, (i) => ({ ...(i % 2 ? check(1) : refund(1)), after: 4 })), hop(5)],
    ],
    jumps: [],
    end: 5,
  },
  penalties: {
    ...first,
    threads: [
      [penalize(6), check(1)],
      [penalize(3), check(2)],
    ],
    end: 4,
  },
  'two keys': { ...one, threads: [[check(1)], [check(1, 2)], [check(1)]], jumps: [3], tries: 1, end: 6 },
  'two keys, a death': { ...one, threads: [[check(1)], [check(1, 2)]], jumps: [1, 4], end: 5, deaths: true },
  'two keys, given back': {
    ...one,
    threads: [[lend(1)], [lend(1, 2), check(1)]],
    jumps: [3],
    tries: 1,
    end: 6,
  },
  'two keys, given back after a refund by key': {
    ...one,
    threads: [[lend(1)], [refund(1), from(2, check(1, 2)), check(1, 2)]],
    end: 3,
  },
  'a way lost while its tick is marked': {
    ...one,
    threads: [[check(1), from(2, check(1))], [check(1, 2)]],
    end: 3,
  },
  'two keys, to and fro': {
    ...one,
    threads: [[check(1)], [from(1, check(1)), from(5, check(1, 2)), from(9, check(1))]],
    jumps: [],
    end: 9,
  },
  'to and fro, elsewhere': {
    ...one,
    elsewhere: true,
    threads: [[check(1)], [from(1, check(1)), from(5, check(1, 2))]],
    jumps: [],
    end: 5,
  },
  'elsewhere, a way with counts': {
    ...one,
    elsewhere: 'counted',
    threads: [[check(1)], [from(1, check(1)), from(5, check(1, 2))]],
    jumps: [],
    end: 5,
  },
  'a key evicted alive': { ...first, evicts: true, threads: [[lend(2)], [check(2, 2), check(1, 2)]], end: 2 },
}

const prefixed = (prefix, all) =>
  Object.fromEntries(Object.entries(all).map(([name, x]) => [`${prefix}: ${name}`, x]))
export const meterScenarios = {
  ...prefixed('token bucket', bucket),
  ...prefixed('fixed window', fixedWindow),
}

/** Each mistake with a scenario that fails. */
const bucketMistakes = {
  'tick before adm': 'three threads, time in steps',
  'emptied in the same epoch': 'three threads, long gaps',
  'settled unemptied': 'three threads, long gaps',
  'settled before emptied': 'three threads, long gaps',
  'settled by a loser': 'three threads, long gaps',
  'emptied before the tick': 'three threads, long gaps',
  'tick moved unmarked': 'three threads, long gaps',
  'emptied a burst early': 'penalties',
  'a long way in one hop': 'three threads, long gaps',
  'a TAT left behind': 'hops without an admission',
  'refused on one look': 'given back, two each',
  'no carry': 'a stall of one lap',
  'a penalty beyond D': 'a penalty among decisions',
  'full as by the rule': 'a larger bucket by another limit',
  'given back by an old clock': 'given back with ticks of 2',
  'refund in the same epoch': 'given back, two each',
  'given back although drained': 'given back, two each',
  'given back by the TAT it left': 'given back by three',
  'given back after a refund by key': 'given back, and a refund by key',
  'refunds not counted': 'epochs go round by refunds',
  'name before adm': 'two keys',
  'taken unexpired': 'two keys, given back',
  'claimed in the same epoch': 'two keys',
  'not settled': 'to and fro, elsewhere',
  'UNCOUNTED ignored': 'two keys, long gaps, a death',
  'promoted by a stranger': 'two keys, to and fro',
}
const windowMistakes = {
  'tick before adm': 'first, three threads',
  'emptied in the same epoch': 'first, three threads',
  'settled unemptied': 'first, three threads',
  'settled before emptied': 'first, three threads',
  'settled by a loser': 'first, three threads',
  'emptied before the tick': 'first, three threads',
  'tick moved unmarked': 'first, three threads',
  'emptied a tick early': 'first, three threads',
  'an empty window stays': 'given back, and a refund by key',
  'an empty window moved by a mark': 'first, three threads',
  'refused on one look': 'clock, three threads',
  'a penalty beyond the meter': 'penalties',
  'refund in the same epoch': 'two refunds by key',
  'given back by its tick': 'given back, two each',
  'given back in another epoch': 'given back, and a refund by key',
  'given back after a refund by key': 'given back after a block and a refund by key',
  'refunds not counted': 'epochs go round by refunds',
  'counted in an old period': 'a refund that counts itself late',
  'name before adm': 'two keys',
  'taken unexpired': 'two keys',
  'claimed in the same epoch': 'two keys',
  'not settled': 'to and fro, elsewhere',
  'promoted unemptied': 'a way lost while its tick is marked',
  'promoted by a stranger': 'two keys, to and fro',
}
const scenarioOf = (prefix, all) =>
  Object.fromEntries(
    Object.entries(all).map(([mistake, name]) => [`${prefix}: ${mistake}`, `${prefix}: ${name}`]),
  )
export const meterMistakes = {
  ...scenarioOf('token bucket', bucketMistakes),
  ...scenarioOf('fixed window', windowMistakes),
}
