// run: also-long

import {
  ALGORITHM_NAMES,
  algorithmNames,
  comparedRules,
  comparedWith,
  rulesOf,
} from 'millrace-cli/dist/replay/algorithms.js'
import { PROMISES } from 'millrace-cli/dist/replay/promises.js'
import { replay } from 'millrace-cli/dist/replay/replay.js'
import type { Traffic } from 'millrace-cli/dist/replay/traffic.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

const MINUTE = 60_000
const START = Date.UTC(2026, 2, 9, 14)
const RULES = [{ limit: 10, windowMs: MINUTE }]
const nothing = () => {}

/** The result of fixed windows of these limits. */
function fixedWindow(requests: Traffic, rules: readonly { limit: number; windowMs: number }[]) {
  const named = rules.map(({ limit, windowMs }, i) => {
    return { name: `${i}`, limit, window: windowMs, algorithm: 'fixed-window' as const }
  })
  const { algorithm, ...found } = comparedWith('fixed-window', requests, named, nothing)
  assert.is(algorithm, 'fixed-window')
  return found
}

function traffic(requests: [client: string, atMs: number][]) {
  const clients = [...new Set(requests.map(([client]) => client))]
  return {
    clients,
    atMs: requests.map(([, atMs]) => atMs),
    client: requests.map(([client]) => clients.indexOf(client)),
  }
}
const burst = (client: string, count: number, atMs: number) =>
  Array.from({ length: count }, (): [string, number] => [client, atMs])

test('a burst at a minute boundary is admitted twice', () => {
  const requests = [...burst('a', 10, START + MINUTE - 1_000), ...burst('a', 12, START + MINUTE)]
  assert.equal(fixedWindow(traffic(requests), RULES), { refused: 2, mostInWindow: [20], clientsOver: 1 })
})

test('the same burst within a minute, or a window apart, is not', () => {
  const within = [...burst('a', 10, START), ...burst('a', 12, START + 59_000)]
  assert.equal(fixedWindow(traffic(within), RULES), { refused: 12, mostInWindow: [10], clientsOver: 0 })
  const apart = [...burst('a', 10, START), ...burst('a', 10, START + MINUTE)]
  assert.equal(fixedWindow(traffic(apart), RULES), { refused: 0, mostInWindow: [10], clientsOver: 0 })
})

test('clients count separately, and requests by time in any order of the log', () => {
  const requests = [
    ...burst('b', 11, START + MINUTE),
    ...burst('a', 4, START + MINUTE + 500),
    ...burst('a', 9, START + MINUTE - 500),
    ...burst('c', 1, START),
  ]
  assert.equal(fixedWindow(traffic(requests), RULES), { refused: 1, mostInWindow: [13], clientsOver: 1 })
})

test('no requests, no refusals', () => {
  assert.equal(fixedWindow(traffic([]), RULES), { refused: 0, mostInWindow: [0], clientsOver: 0 })
})

test('with several rules a request must fit the counter of each, and a refused one counts in none', () => {
  const rules = [
    { limit: 2, windowMs: 1_000 },
    { limit: 5, windowMs: MINUTE },
  ]
  const requests = [0, 1, 2, 3].flatMap((second) => burst('a', 3, START + 1_000 * second))
  // 2 in each second until 5 in the minute: 1 + 1 + 2 + 3 are refused.
  assert.equal(fixedWindow(traffic(requests), rules), { refused: 7, mostInWindow: [2, 5], clientsOver: 0 })
  const atBoundary = [...burst('a', 2, START + MINUTE - 1), ...burst('a', 2, START + MINUTE)]
  assert.equal(fixedWindow(traffic(atBoundary), rules), { refused: 0, mostInWindow: [4, 4], clientsOver: 1 })
})

test('the result equals a recount of every window, and is at most twice the limit', () => {
  const some = fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 60 })), {
    maxLength: 80,
  })
  fc.assert(
    fc.property(
      some,
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 20 }),
      (requests, limit, windowMs) => {
        const passed: [string, number][] = []
        for (const [client, at] of [...requests].sort(([, a], [, b]) => a - b)) {
          const same = passed.filter(
            ([other, then]) => other === client && Math.trunc(then / windowMs) === Math.trunc(at / windowMs),
          )
          if (same.length < limit) passed.push([client, at])
        }
        const most = ['a', 'b'].map((client) =>
          Math.max(
            0,
            ...passed.map(
              ([, end]) =>
                passed.filter(([of, at]) => of === client && at > end - windowMs && at <= end).length,
            ),
          ),
        )
        const found = fixedWindow(traffic(requests), [{ limit, windowMs }])
        assert.equal(found, {
          refused: requests.length - passed.length,
          mostInWindow: [Math.max(...most)],
          clientsOver: most.filter((count) => count > limit).length,
        })
        assert.ok(found.mostInWindow[0]! <= 2 * limit)
      },
    ),
  )
})

test('by any algorithm, the windows are those of a recount, and none has more than it promises', () => {
  const some = fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 300 })), {
    maxLength: 80,
  })
  fc.assert(
    fc.property(some, fc.constantFrom(...ALGORITHM_NAMES), (requests, algorithm) => {
      const [limit, window] = [4, 100]
      const all = traffic(requests)
      const found = comparedWith(algorithm, all, [{ limit, window, algorithm }], nothing)
      const { admitted, admissions } = replay(all, [{ limit, window, algorithm }], nothing)
      const passed = requests.filter((_, i) => admitted[i] === 1)
      const most = all.clients.map((client) => {
        const own = passed.filter(([name]) => name === client).map(([, at]) => at)
        return Math.max(0, ...own.map((end) => own.filter((at) => at > end - window && at <= end).length))
      })
      assert.equal(found, { algorithm, ...admissions })
      assert.equal(admissions, {
        refused: requests.length - passed.length,
        mostInWindow: [Math.max(0, ...most)],
        clientsOver: most.filter((count) => count > limit).length,
      })
      const promised = PROMISES[algorithm].mostInWindow({ limit, edge: 'strict' })
      assert.ok(found.mostInWindow[0]! <= promised)
    }),
    { numRuns: 300 },
  )
})

const ARGUMENTS = { algorithm: 'sliding-window', limit: 6, window: '1m' } as const

test('an algorithm to compare with gets the options that it has, and the replayed one all others', () => {
  const options = { ...ARGUMENTS, compare: ['fixed-window', 'token-bucket'] as const }
  const given = { ...options, granularity: '1s', align: 'first', burst: 3 } as const
  const plain = { limit: 6, window: '1m' }
  assert.equal(rulesOf(given), [{ ...plain, algorithm: 'sliding-window', granularity: '1s' }])
  assert.equal(comparedRules('fixed-window', given), [
    { ...plain, algorithm: 'fixed-window', align: 'first' },
  ])
  assert.equal(comparedRules('token-bucket', given), [{ ...plain, algorithm: 'token-bucket', burst: 3 }])
  assert.throws(() => rulesOf({ ...given, compare: ['fixed-window'] }), /^burst: expected nothing beside/)
})

test('an invalid rule of an algorithm to compare with names that algorithm', () => {
  const most = { ...ARGUMENTS, limit: 3_000_000, compare: ['token-bucket'] as const }
  assert.throws(() => comparedRules('token-bucket', most), /^--compare token-bucket: limit: expected at most/)
  const rule = [{ name: '3000000/1m', limit: 3_000_000, window: '1m' as const }]
  assert.throws(
    () => comparedRules('fixed-window', { ...ARGUMENTS, rule, compare: ['fixed-window'] }),
    /^--compare fixed-window: --rule 3000000\/1m: limit: expected at most/,
  )
})

test('names are joined by commas, and the option may be repeated', () => {
  assert.equal(algorithmNames('fixed-window,token-bucket'), ['fixed-window', 'token-bucket'])
  assert.equal(algorithmNames('token-bucket', ['fixed-window']), ['fixed-window', 'token-bucket'])
  for (const wrong of ['', 'fixed-window,', 'fixed-window, token-bucket', 'leaky'])
    assert.throws(() => algorithmNames(wrong), 'Allowed choices are sliding-window, ')
  assert.throws(() => algorithmNames('token-bucket', ['token-bucket']), 'Expected each algorithm once')
})

test.run()
