// run: also-long

import { type Replay, replay, violatesGuarantee } from 'millrace-cli/dist/replay/replay.js'
import { SlidingLog } from 'millrace-cli/dist/replay/sliding-log.js'
import type { Traffic } from 'millrace-cli/dist/replay/traffic.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

const nothing = () => {}
const traffic = (requests: [string, number][]): Traffic => {
  const clients = [...new Set(requests.map(([client]) => client))]
  return {
    clients,
    atMs: requests.map(([, atMs]) => atMs),
    client: requests.map(([client]) => clients.indexOf(client)),
  }
}

/** The expected result by the definitions: recounts every window and shares no code with the replay. */
function oracle(requests: [string, number][], limit: number, windowMs: number) {
  const inOrder = requests.map(([client, atMs], i) => ({ client, atMs, i }))
  inOrder.sort((a, b) => a.atMs - b.atMs || a.i - b.i)
  const admitted: typeof inOrder = []
  const peaks: Record<string, number> = {}
  let exactRefused = 0
  inOrder.forEach((request, i) => {
    const within = (log: typeof inOrder) =>
      log.filter(({ client, atMs }) => client === request.client && atMs > request.atMs - windowMs).length
    if (within(admitted) < limit) admitted.push(request)
    else exactRefused++
    peaks[request.client] = Math.max(peaks[request.client] ?? 0, within(inOrder.slice(0, i + 1)))
  })
  return { exactRefused, peaks }
}

const START = Date.UTC(2026, 2, 9)
const requests = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 200 })), {
  maxLength: 150,
})
const rule = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  window: fc.constantFrom(1_000, 4_000, 30_000, 60_000),
  granules: fc.constantFrom(1, 2, 5, 10),
  edge: fc.constantFrom('strict' as const, 'smooth' as const),
})

test('a sliding log counts like a filter over all times', () => {
  const gaps = fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.boolean()), { maxLength: 300 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), gaps, (windowMs, gaps) => {
      const log = new SlidingLog(windowMs)
      const moments: number[] = []
      let atMs = START
      for (const [gap, counts] of gaps) {
        atMs += gap
        if (counts) {
          log.add(atMs)
          moments.push(atMs)
        }
        assert.is(log.used(atMs), moments.filter((moment) => moment > atMs - windowMs).length)
      }
    }),
  )
})

test('a sliding log drops thousands of expired times and no other', () => {
  const log = new SlidingLog(5_000)
  for (let atMs = 0; atMs < 20_000; atMs++) {
    log.add(atMs)
    assert.is(log.used(atMs), Math.min(atMs + 1, 5_000))
  }
  assert.is(log.used(24_998), 1)
  assert.is(log.used(24_999), 0)
})

test('a cleared sliding log is empty', () => {
  const log = new SlidingLog(1_000)
  for (let atMs = 5_000; atMs < 9_000; atMs++) {
    log.add(atMs)
    log.used(atMs)
  }
  log.clear()
  assert.is(log.used(10), 0)
  log.add(10)
  assert.is(log.used(10), 1)
})

test('a request exactly one window ago does not count', () => {
  const log = new SlidingLog(1_000)
  log.add(500)
  assert.equal([log.used(1_499), log.used(1_500)], [1, 0])
})

test('on random traffic, strict admits none wrongly and refuses none more than a bucket early', () => {
  fc.assert(
    fc.property(requests, rule, (requests, { limit, window, granules }) => {
      const log = requests.map(([client, second]): [string, number] => [client, START + 500 * second])
      const found = replay(
        traffic(log),
        [{ limit, window, granularity: window / granules, edge: 'strict' }],
        nothing,
      )
      assert.equal([found.wronglyAdmitted, found.refusedTooEarly], [0, 0])
    }),
  )
})

test('on random traffic, neither edge refuses more than a bucket early', () => {
  fc.assert(
    fc.property(requests, rule, (requests, { limit, window, granules, edge }) => {
      const log = requests.map(([client, second]): [string, number] => [client, START + 700 * second])
      const found = replay(traffic(log), [{ limit, window, granularity: window / granules, edge }], nothing)
      assert.is(found.refusedTooEarly, 0)
      assert.is(violatesGuarantee(found), false)
    }),
  )
})

test('the exact log, the peaks and the counts match the definitions', () => {
  fc.assert(
    fc.property(requests, rule, (requests, { limit, window, edge }) => {
      const log = requests.map(([client, second]): [string, number] => [client, START + 500 * second])
      const found = replay(traffic(log), [{ limit, window, edge }], nothing)
      const { exactRefused, peaks } = oracle(log, limit, window)
      assert.is(found.exactRefused, exactRefused)
      assert.is(found.requests, log.length)
      assert.is(found.clients, Object.keys(peaks).length)
      assert.is(found.refusedClients, found.refusedMost.length)
      assert.is(
        found.refused,
        found.refusedMost.reduce((sum, { refused }) => sum + refused, 0),
      )
      for (const { client, requests, refused, refusedBy, peaks: own } of found.refusedMost) {
        assert.equal([own, refusedBy], [[peaks[client]], [refused]])
        assert.is(requests, log.filter(([name]) => name === client).length)
        assert.ok(refused > 0 && refused < requests)
      }
    }),
  )
})

test('without requests within a bucket of the window’s edge, refusals equal those of the exact log', () => {
  fc.assert(
    fc.property(requests, fc.integer({ min: 1, max: 12 }), (requests, limit) => {
      // Multiples of 700 ms are never 9,999 to 10,001 ms apart.
      const log = requests.map(([client, at]): [string, number] => [client, START + 700 * at])
      const found = replay(traffic(log), [{ limit, window: '10s', granularity: '1ms' }], nothing)
      assert.equal([found.wronglyAdmitted, found.wronglyRefused], [0, 0])
      assert.is(found.refused, oracle(log, limit, 10_000).exactRefused)
      for (const { client, refused } of found.refusedMost) {
        const own = log.filter(([name]) => name === client)
        assert.is(refused, oracle(own, limit, 10_000).exactRefused)
      }
    }),
    { numRuns: 50 },
  )
})

test('requests are sorted by time, and those of one time keep their order', () => {
  const log: [string, number][] = [
    ['late', START + 3_000],
    ['first', START],
    ['late', START + 1_000],
    ['last', START + 120_000],
    ['late', START + 2_000],
  ]
  const inOrder = log.toSorted((a, b) => a[1] - b[1])
  const limits = [{ limit: 1, window: '1m' }] as const
  const found = replay(traffic(log), limits, nothing)
  const theSame = { refusedMost: [], admitted: [] }
  assert.equal({ ...found, ...theSame }, { ...replay(traffic(inOrder), limits, nothing), ...theSame })
  assert.equal([...found.admitted], [0, 1, 1, 1, 0])
  assert.equal([found.firstMs, found.lastMs], [START, START + 120_000])
  assert.equal(found.refusedMost, [{ client: 'late', requests: 3, refused: 2, refusedBy: [2], peaks: [3] }])
})

test('clients are sorted by refusals, then by requests, then by first appearance', () => {
  const times = (client: string, count: number, apartMs: number) =>
    Array.from({ length: count }, (_, i): [string, number] => [client, START + i * apartMs])
  const log = [...times('x', 3, 1), ...times('y', 3, 1), ...times('z', 5, 1), ...times('spread', 4, 40_000)]
  const found = replay(traffic(log), [{ limit: 1, window: '1m' }], nothing)
  assert.equal(
    found.refusedMost.map(({ client, refused }) => [client, refused]),
    [
      ['z', 4],
      ['spread', 2],
      ['x', 2],
      ['y', 2],
    ],
  )
})

test('on random traffic, several rules refuse what an exact log of all refuses, within a bucket', () => {
  const several = fc.uniqueArray(rule, { minLength: 2, maxLength: 4, selector: ({ window }) => window })
  fc.assert(
    fc.property(requests, several, (requests, several) => {
      const log = requests.map(([client, second]): [string, number] => [client, START + 500 * second])
      const rules = several.map(({ limit, window, granules }, i) => {
        return { name: `${i}`, limit, window, granularity: window / granules, edge: 'strict' as const }
      })
      const found = replay(traffic(log), rules, nothing)
      assert.equal([found.wronglyAdmitted, found.refusedTooEarly], [0, 0])
      const byEach = found.rules.map((_, i) =>
        found.refusedMost.reduce((sum, { refusedBy }) => sum + refusedBy[i]!, 0),
      )
      assert.equal(
        found.rules.map(({ refused }) => refused),
        byEach,
      )
      for (const { refused, refusedBy } of found.refusedMost) {
        assert.ok(Math.max(...refusedBy) <= refused)
        assert.ok(refusedBy.reduce((sum, by) => sum + by) >= refused)
      }
    }),
  )
})

test('a rule whose limit is never reached refuses nothing, and changes nothing', () => {
  const burst = Array.from({ length: 9 }, (_, i): [string, number] => ['a', START + 100 * i])
  const rules = [
    { name: 'tight', limit: 4, window: '1s' },
    { name: 'loose', limit: 100, window: '1h' },
  ]
  const found = replay(traffic(burst), rules, nothing)
  assert.equal(
    found.rules.map(({ name, refused, refusedAlone, refusedClients }) => [
      ...[name, refused, refusedAlone, refusedClients],
    ]),
    [
      ['tight', 5, 5, 1],
      ['loose', 0, 0, 0],
    ],
  )
  assert.equal(found.admitted, replay(traffic(burst), [rules[0]!], nothing).admitted)
})

test('no traffic gives an empty result', () => {
  const found = replay(traffic([]), [{ limit: 5, window: '1m' }], nothing)
  assert.equal([found.requests, found.clients, found.refused, found.exactRefused], [0, 0, 0, 0])
  assert.equal([found.firstMs, found.lastMs, found.refusedMost], [null, null, []])
})

test('a too early refusal violates a guarantee, and with strict a wrong admission', () => {
  const found = replay(traffic([]), [{ limit: 5, window: '1m' }], nothing)
  const broken = (changes: Partial<Replay>) => violatesGuarantee({ ...found, ...changes })
  assert.is(broken({}), false)
  assert.is(broken({ wronglyRefused: 9, exactRefused: 7, refused: 9 }), false)
  assert.is(broken({ refusedTooEarly: 1 }), true)
  assert.is(broken({ wronglyAdmitted: 1 }), true)
  assert.is(broken({ wronglyAdmitted: 1, edge: 'smooth' }), false)
  assert.is(broken({ refusedTooEarly: 1, edge: 'smooth' }), true)
  const admissions = { refused: 0, mostInWindow: [11], clientsOver: 1 }
  assert.is(broken({ admissions, edge: 'smooth' }), true)
  assert.is(broken({ admissions: { ...admissions, mostInWindow: [10] }, edge: 'smooth' }), false)
})

test('other algorithms may admit more than the limit, and refuse early, but have bounds of their own', () => {
  const mosts = { 'sliding-counter': 9, 'fixed-window': 10, 'token-bucket': 7, 'leaky-bucket': 7 } as const
  for (const [name, most] of Object.entries(mosts)) {
    const algorithm = name as keyof typeof mosts
    const burst = algorithm.endsWith('bucket') ? { burst: 2 } : {}
    const found = replay(traffic([]), [{ limit: 5, window: '1m', algorithm, ...burst }], nothing)
    const broken = (mostInWindow: number) => {
      const admissions = { refused: 0, mostInWindow: [mostInWindow], clientsOver: 1 }
      return violatesGuarantee({ ...found, wronglyAdmitted: 3, refusedTooEarly: 2, admissions })
    }
    assert.equal([name, broken(most), broken(most + 1)], [name, false, true])
  }
})

test('a rule is replayed with the options of its algorithm', () => {
  const first = replay(
    traffic([]),
    [{ limit: 5, window: '1m', algorithm: 'fixed-window', align: 'first' }],
    nothing,
  )
  assert.equal([first.rules[0]!.algorithm, first.rules[0]!.align], ['fixed-window', 'first'])
  const burst: [string, number][] = Array.from({ length: 9 }, () => ['a', START])
  const bucket = replay(
    traffic(burst),
    [{ limit: 5, window: '1m', algorithm: 'token-bucket', burst: 2 }],
    nothing,
  )
  assert.equal([bucket.refused, bucket.rules[0]!.limit, bucket.rules[0]!.burst], [7, 5, 2])
})

test.run()
