// The scenarios, and the mistakes: for each rule of the protocol a scenario that fails without it.
import { conversionMistakes } from './conversion-mistakes.mjs'
import { conversions } from './conversion-scenarios.mjs'
import { ringFor } from './range-sum.mjs'
import { several } from './several-scenarios.mjs'

const check = (key, cost = 1) => ({ kind: 'check', key, cost })
const refund = (key, cost) => ({ kind: 'refund', key, cost })
const borrow = (key, cost = 1) => ({ kind: 'borrow', key, cost })
const block = (key, cost) => ({ kind: 'block', key, cost })
const endBlock = (key) => ({ kind: 'end block', key })
const live = (c = 0, tick = 0, mark = 0) => [1, c, tick, mark]
const plain = {
  'three decisions, limit 1': { init: [live()], threads: [[check(1)], [check(1)], [check(1)]], clock: 2 },
  'three decisions, limit 2, one already used': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[check(1)], [check(1)], [check(1)]],
    clock: 2,
  },
  'costs 1, 2 and 3, limit 3': {
    init: [live()],
    limit: 3,
    threads: [[check(1)], [check(1, 2)], [check(1, 3)]],
    clock: 1,
  },
  'stalls of most of the laps': {
    init: [live(0, 1)],
    threads: [[check(1)], [check(1), check(1)]],
    clock: 5,
    laps: 4,
  },
  'idle for exactly all laps': {
    init: [live(1, 2)],
    threads: [[check(1)], [check(1)]],
    clock: 1,
    laps: 4,
    gaps: [3, 8, 9, 6, 5, 16], // four laps of two buckets are 8 ticks
  },
  'smooth, half granules': {
    init: [live(2, 2)],
    limit: 3,
    smooth: true,
    sub: 2,
    threads: [[check(1)], [check(1, 2)]],
    clock: 2,
    gaps: [3],
  },
  'a refund among decisions': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[check(1)], [refund(1, 2)], [check(1)]],
    clock: 1,
    exact: false,
  }, // a charge that overlaps a refund may stay
  'a sum among charges': { init: [[1, 1, 1]], limit: 2, threads: [[check(1)], [check(1, 2)]], clock: 3 },
  'an admission given back among decisions': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[borrow(1)], [check(1, 2), check(1)]],
    clock: 2,
  },
  'given back after all laps': {
    init: [live()],
    limit: 2,
    threads: [[borrow(1)], [check(1)]],
    clock: 9,
    laps: 4,
    exact: false,
  }, // a charge may stay after a stall of exactly all laps
  'an epoch goes round': {
    init: [live(8, 2)],
    limit: 8,
    epochs: 8,
    // One refusal, then eight refunds: as many new epochs as an epoch has values.
    threads: [[check(1), ...Array.from({ length: 8 }, () => refund(1, 1))]],
    clock: 0,
  },
  'an epoch goes round by blocks': {
    init: [live(1, 2)],
    limit: 2,
    epochs: 4,
    // One refusal, then four blocks that expire at once: one unit stays free.
    threads: [[check(1, 2), block(1, 0), block(1, 0), block(1, 0), block(1, 0)]],
    clock: 0,
  },
  'given back after refunds by key': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[refund(1, 1), check(1), refund(1, 1), check(1), refund(1, 1), borrow(1)], [check(1)]],
    clock: 0,
    exact: false,
    gives: true,
  },
  'refunds by key while an admission is given back': {
    init: [live(0, 2, 1)],
    threads: [[borrow(1)], [refund(1, 1), check(1), refund(1, 1), check(1)]],
    clock: 0,
    exact: false,
  },
  'two give back, where refunds by key have been': {
    init: [live(0, 2, 2)],
    limit: 2,
    threads: [[borrow(1)], [borrow(1)], [refund(1, 1)]],
    clock: 0,
    exact: false,
  },
  'the last unit, where refunds by key have been': {
    init: [live(1, 2, 2)],
    limit: 2,
    threads: [[check(1)], [check(1), check(1)]],
    clock: 1,
  },
  'a sunk bucket': {
    init: [live(0, 2, 2)],
    threads: [[borrow(1)], [refund(1, 1), check(1), refund(1, 1), check(1)]],
    clock: 0,
    exact: false,
  },
  'refunds by key that overlap, and an admission that one of them took': {
    init: [live(1, 2, 2)],
    limit: 1,
    threads: [[borrow(1)], [refund(1, 1), refund(1, 1), check(1)], [refund(1, 1)]],
    clock: 0,
    exact: false,
  },
  'an admission given back among a turn and another': {
    init: [live(0, 2, 2)],
    limit: 2,
    threads: [[borrow(1)], [borrow(1)], [refund(1, 1), check(1), refund(1, 1), check(1)]],
    clock: 0,
    exact: false,
  },
  'a death while giving back, where refunds by key have been': {
    init: [live(0, 2, 1)],
    threads: [[borrow(1)], [refund(1, 1), check(1), refund(1, 1), check(1)]],
    clock: 0,
    deaths: true,
    exact: false,
  },
  'refunds before and after': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[refund(1, 1), check(1)], [check(1, 2)]],
    clock: 0,
    exact: false,
  },
  'a refund while its way is reused': {
    init: [[1, 1, 1]],
    threads: [[refund(1, 1)], [check(2), check(2)]],
    clock: 3,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'a block among decisions': {
    init: [live()],
    limit: 1,
    threads: [[check(1)], [block(1, 2), check(1)]],
    clock: 3,
    gaps: [4],
  },
  'a block that ends for another among decisions': {
    init: [live(1, 2)],
    limit: 2,
    threads: [[check(1)], [block(1, 2)], [endBlock(1), check(1)]],
    clock: 1,
    gaps: [7],
  },
  'a blocked way goes to another key': {
    ways: 1,
    init: [live(1, 1)],
    limit: 2,
    givesWay: true,
    evictLive: true,
    exact: false,
    threads: [[block(1, 9)], [check(2), check(2)]],
    clock: 2,
    tries: 1,
    restKeys: 0,
    gaps: [],
  },
  'an expired blocked way goes to another key': {
    ways: 1,
    init: [live(1, 0)],
    start: 1,
    limit: 2,
    givesWay: true,
    threads: [[block(1, 9)], [check(2), check(2)]],
    clock: 3,
    tries: 1,
    restKeys: 0,
    gaps: [],
    exact: false,
  },
  'a key blocked again while its way goes to another': {
    ways: 1,
    init: [live()],
    givesWay: true,
    evictLive: true,
    exact: false,
    threads: [[block(1, 5), block(1, 9)], [block(2, 5)]],
    clock: 0,
    tries: 2,
    restKeys: 0,
    gaps: [],
  },
  'two meet a new key': { ways: 2, threads: [[check(1)], [check(1)]], clock: 2, tries: 2 },
  'three meet a new key': { ways: 2, threads: [[check(1)], [check(1)], [check(1)]], clock: 0, tries: 1 },
  'a way reused while its key decides': {
    ways: 1,
    init: [[1, 1, 1]],
    threads: [[check(1)], [check(2), check(2)]],
    clock: 4,
    tries: 1,
    restKeys: 2,
  },
  'a way lost to another key and won back': {
    ways: 1,
    init: [[1, 1, 1]],
    threads: [[check(1)], [check(1)], [check(2)]],
    clock: 1,
    tries: 1,
    restKeys: 0,
    gaps: [],
    exact: false,
  },
  'two keys swap ways': {
    ways: 2,
    init: [[1, 1, 2]],
    threads: [[check(1)], [check(2), check(2)]],
    clock: 3,
    tries: 1,
    choice: { 1: [1], 2: [0] },
    restKeys: 0,
  },
  'three keys, one stale name': {
    ways: 3,
    init: [[1, 0, 0]],
    start: 4,
    threads: [[check(2)], [check(1)], [check(3), check(3)]],
    clock: 0,
    tries: 1,
    choice: { 1: [1], 2: [0], 3: [0, 2] },
    restKeys: 0,
  },
  'live eviction': {
    ways: 2,
    init: [
      [1, 1, 2],
      [2, 1, 2],
    ],
    evictLive: true,
    exact: false,
    threads: [[check(1)], [check(3), check(3)]],
    clock: 1,
    tries: 1,
    gaps: [],
  },
  'a death while deciding': { init: [live()], threads: [[check(1)], [check(1)]], clock: 2, deaths: true },
  'a death while inserting': { ways: 3, threads: [[check(1)], [check(1)]], clock: 1, tries: 2, deaths: true },
}

// The scenarios for nodes above the buckets: a window of three granules, where a lap turns.
const structures = {
  'block sums': { sums: 'blocks' },
  'block sums on two levels': { sums: 'blocks', levels: 2 },
  'a Fenwick tree': { sums: 'fenwick' },
}
const summed = {}
for (const [name, structure] of Object.entries(structures)) {
  const ring = ringFor(structure, 3)
  const add = (what, scenario) => {
    summed[`${name}: ${what}`] = { ...structure, start: ring - 1, ...scenario }
  }
  add('two charges at the turn of a lap', {
    init: [live(0, ring - 1)],
    threads: [[check(1)], [check(1)]],
    clock: 2,
  })
  add('a sum among charges, at the turn of a lap', {
    init: [live(1, ring - 4)],
    limit: 2,
    threads: [[check(1)], [check(1), check(1)]],
    clock: 2,
  })
  add('a sum among charges, at the turn of a block', {
    init: [live(1, ring - 3)],
    start: ring,
    limit: 2,
    threads: [[check(1, 2)], [check(1), check(1)]],
    clock: 3,
  })
  add('a charge taken out among charges', {
    init: [live(1, ring - 2)],
    limit: 2,
    threads: [[check(1)], [check(1, 2)], [check(1)]],
    clock: 0,
  })
  add('a late charge against a newer lap', {
    init: [live()],
    start: 1,
    threads: [[check(1)], [check(1)]],
    clock: ring + 1,
    laps: 4,
  })
  add('idle for exactly all laps', {
    init: [live(1, ring - 1)],
    threads: [[check(1)], [check(1)]],
    clock: 1,
    laps: 4,
    gaps: [5, ring - 1, ring, 2 * ring, 3 * ring, ...[-1, 0, 1, 2, 3].map((d) => 4 * ring + d), 8 * ring],
  })
  add('one bucket idle for exactly all laps', {
    init: [live(1, 1)],
    start: ring,
    threads: [[borrow(1)]],
    clock: 1,
    laps: 8, // enough laps that a sweep does not visit every block at once
    gaps: [5, ring, 7 * ring + 2, 7 * ring + 3, 7 * ring + 4, 15 * ring + 4],
  })
  add('a sum that takes as long as the rest of a lap', {
    init: [live(1, 3)],
    start: 3,
    limit: 2,
    threads: [[check(1, 2)], [check(1)]],
    clock: ring - 3,
  })
  add('a refund among decisions', {
    init: [live(1, ring - 2)],
    limit: 2,
    threads: [[check(1)], [refund(1, 2)]],
    clock: 1,
    exact: false,
  })
  add('an admission given back', {
    init: [live(1, ring - 2)],
    limit: 2,
    threads: [[borrow(1)], [check(1, 2)]],
    clock: 2,
  })
  add('a death in the middle of a charge', {
    init: [live()],
    threads: [[check(1)], [check(1)]],
    clock: 1,
    deaths: true,
    gaps: [5, 4 * ring],
    laps: 4,
  })
}

export const scenarios = { ...plain, ...summed, ...several, ...conversions }
export const mistakes = {
  'adm before bucket': 'three decisions, limit 1',
  'tick before adm': 'three decisions, limit 1',
  'no epoch': 'three decisions, limit 1',
  'no late check': 'stalls of most of the laps',
  'no sweep': 'idle for exactly all laps',
  'one hop': 'idle for exactly all laps',
  'sweep unchecked': 'stalls of most of the laps',
  'generation unraised': 'refunds by key while an admission is given back',
  'generation unread': 'refunds by key while an admission is given back',
  'given back unannounced': 'refunds by key while an admission is given back',
  'turned beside others': 'refunds by key while an admission is given back',
  'given back under a turn': 'an admission given back among a turn and another',
  'bucket read before its turn': 'refunds by key that overlap, and an admission that one of them took',
  'refund without mark': 'a refund among decisions',
  'asOf without epoch': 'costs 1, 2 and 3, limit 3',
  'second commit without epoch': 'a sum among charges',
  'take-out without epoch': 'costs 1, 2 and 3, limit 3',
  'note left standing': 'an epoch goes round',
  'refund without names': 'a refund while its way is reused',
  'no names': 'a way reused while its key decides',
  'attempt without names': 'a way reused while its key decides',
  'attempt before its tick': 'given back after all laps',
  'attempt checks before adm': 'two keys swap ways',
  'attempt without tick': 'three decisions, limit 2, one already used',
  unsettled: 'a way lost to another key and won back',
  'claim without epoch': 'a way reused while its key decides',
  'NAMED before its name': 'three keys, one stale name',
  'inherited block': 'a blocked way goes to another key',
  'one UNTIL for two blocks': 'a key blocked again while its way goes to another',
  'ends left as they are': 'a key blocked again while its way goes to another',
  'no scan': 'two meet a new key',
  'no veto': 'two meet a new key',
  'promote by store': 'two meet a new key',
  'ring without a spare span': 'block sums: a late charge against a newer lap',
  'bucket before its nodes': 'block sums: a sum among charges, at the turn of a lap',
  'late node unchecked': 'block sums: a late charge against a newer lap',
  'new lap above old counts': 'block sums: one bucket idle for exactly all laps',
  'sweep above old counts': 'block sums: idle for exactly all laps',
  'fenwick sum unchecked': 'a Fenwick tree: a sum that takes as long as the rest of a lap',
  'a refusal keeps its charges': 'two rules: the second refuses',
  'the refused rule given back': 'two rules: the second refuses',
  'rules decided after a refusal': 'two rules: two admit on the last units',
  'given back by units alone': 'two rules: a refund by key before a charge is given back',
  'a part given back as a whole': 'a reservation settled by less',
  ...conversionMistakes,
}
