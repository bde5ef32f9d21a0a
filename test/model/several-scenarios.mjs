// Scenarios of several rules, groups and reservations (`several.mjs`).
const check = (key, cost = 1) => ({ kind: 'check', key, cost })
const refund = (key, cost) => ({ kind: 'refund', key, cost })
const live = (c = 0, tick = 0, mark = 0) => [1, c, tick, mark]
const rules = (keys, cost = 1) => ({
  kind: 'rules',
  key: keys[0],
  rest: keys.slice(1),
  of: keys.length,
  cost,
})
const reserve = (key, cost, actualCost) => ({ kind: 'reserve', key, cost, actualCost })

// Two rules. Each has its own key, in its own way.
const two = { ways: 2, restKeys: 2, start: 2 }
export const several = {
  'two rules: two admit on the last units': {
    ...two,
    init: [
      [1, 1, 2],
      [2, 0, 2],
    ],
    limits: { 1: 2, 2: 2 },
    threads: [[rules([1, 2])], [rules([1, 2])]],
    clock: 0,
  },
  'two rules: the second refuses': {
    ...two,
    init: [
      [1, 1, 2],
      [2, 1, 2],
    ],
    limits: { 1: 2, 2: 1 },
    threads: [[rules([1, 2])], [check(1), check(2)]],
    clock: 0,
  },
  'two rules: a rollover between the two charges': {
    ...two,
    init: [
      [1, 1, 2],
      [2, 1, 2],
    ],
    limits: { 1: 2, 2: 1 },
    threads: [[rules([1, 2])], [check(1)]],
    clock: 2,
  },
  'two rules: a refund by key before a charge is given back': {
    ...two,
    init: [
      [1, 1, 2],
      [2, 1, 2],
    ],
    limits: { 1: 2, 2: 1 },
    threads: [[rules([1, 2])], [refund(1, 2), check(1)]],
    clock: 0,
    exact: false,
    gives: true,
  },
  'two rules: a death': {
    ...two,
    init: [
      [1, 0, 2],
      [2, 1, 2],
    ],
    limits: { 1: 1, 2: 1 },
    threads: [[rules([1, 2])], [check(1)]],
    clock: 1,
    deaths: true,
  },
  'groups with their members in opposite orders': {
    ...two,
    init: [
      [1, 0, 2],
      [2, 0, 2],
    ],
    limits: { 1: 1, 2: 1 },
    threads: [[rules([1, 2])], [rules([2, 1])]],
    clock: 0,
  },
  'a reservation settled by less': {
    init: [live(1, 2)],
    limit: 3,
    threads: [[reserve(1, 2, 1)], [check(1, 2)]],
    clock: 1,
  },
  'a reservation settled by more': {
    init: [live(0, 2)],
    limit: 3,
    threads: [[reserve(1, 1, 3)], [check(1, 2)]],
    clock: 1,
    penalties: true,
  },
  'a reservation and a refund by key': {
    init: [live(0, 2, 1)],
    limit: 2,
    threads: [[reserve(1, 2, 0)], [refund(1, 1), check(1)]],
    clock: 0,
    exact: false,
  },
  'a reservation and a death': {
    init: [live(0, 2)],
    limit: 2,
    threads: [[reserve(1, 2, 1)], [check(1)]],
    clock: 1,
    deaths: true,
  },
}
