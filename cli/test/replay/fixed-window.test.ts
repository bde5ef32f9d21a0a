import * as fc from 'fast-check'
import { fixedWindow } from 'millrace-cli/dist/replay/fixed-window.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const MINUTE = 60_000
const START = Date.UTC(2026, 2, 9, 14)
const RULES = [{ limit: 10, windowMs: MINUTE }]

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

test.run()
