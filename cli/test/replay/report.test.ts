// run: also-long

import { stripVTControlCharacters } from 'node:util'
import { ALGORITHM_NAMES } from 'millrace-cli/dist/replay/algorithms.js'
import type { Replay } from 'millrace-cli/dist/replay/replay.js'
import { report } from 'millrace-cli/dist/replay/report.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { LOG, NONE, RESULTS, reported, widest } from './results.js'

test('a report of 80 columns has the refusals, their accuracy and the clients', () => {
  const unparsed = { count: 1, examples: [{ line: 58, text: '203.0.113.9 - - [09/Mar' }] }
  assert.is(
    reported(RESULTS, unparsed, 10, 80),
    `Limit: 10 requests per client in any 1m, strict edge, granularity 1s

requests          401
from (UTC)        2026-03-09 14:00:10
to (UTC)          2026-03-09 14:10:09
clients           36
requests refused  112 (27.9 %)
clients refused   2 (5.6 %)
unparsed lines    1
  line 58: 203.0.113.9 - - [09/Mar

Accuracy, compared with an exact log of the admitted requests:
  wrongly admitted  0
  wrongly refused   6 (none more than 1s early)
An exact sliding log would have refused 109 (27.2 %).

The refused clients:
┌──────────────────┬──────────┬─────────┬────────────────────┐
│ client           │ requests │ refused │ most in one window │
├──────────────────┼──────────┼─────────┼────────────────────┤
│ 198.51.100.23    │    1,104 │      64 │                 26 │
│ 2001:db8:5::c0de │       55 │      48 │                 11 │
└──────────────────┴──────────┴─────────┴────────────────────┘
`,
  )
})

test('with 40 columns the table has the clients and their refusals', () => {
  const text = reported(RESULTS, NONE, 10, 40)
  assert.match(text, '│ client           │ refused │')
  assert.match(text, 'from (UTC)        2026-03-09 14:00:10\n')
  assert.ok(widest(text) <= 40)
})

test('no line is wider than the width, with any clients and any lines of the log', () => {
  const count = fc.integer({ min: 0, max: 1e9 })
  const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 300 }))
  const name = fc.oneof(
    fc.constantFrom('10/1s', '4194302/10000d'),
    fc.string({ minLength: 1, maxLength: 40 }),
  )
  const algorithm = fc.constantFrom(...ALGORITHM_NAMES)
  const ruleFigures = fc.record({
    name,
    algorithm,
    limit: fc.integer({ min: 1, max: 2 ** 22 - 2 }),
    windowMs: fc.integer({ min: 1, max: 1e12 }),
    granularityMs: fc.double({ min: 0.001, max: 1e12, noNaN: true }),
    refused: count,
    refusedAlone: count,
    refusedClients: count,
  })
  const spans = { firstMs: fc.constant(0), bucketMs: fc.integer({ min: 1_000, max: 1e10 }) }
  const some = { minLength: 3, maxLength: 3 }
  const timeline = fc.record({ ...spans, admitted: fc.array(count, some), refused: fc.array(count, some) })
  const foundBy = (rules: number) => {
    const ofEach = fc.array(count, { minLength: rules, maxLength: rules })
    const client = fc.record({
      ...{ client: text, requests: count, refused: count, refusedBy: ofEach, peaks: ofEach },
    })
    const found = fc.record({
      requests: count,
      clients: count,
      refused: count,
      refusedClients: count,
      exactRefused: count,
      wronglyAdmitted: count,
      wronglyRefused: count,
      refusedTooEarly: count,
      rules: fc.array(ruleFigures, { minLength: rules, maxLength: rules }),
      edge: fc.constantFrom('strict' as const, 'smooth' as const),
      firstMs: fc.constantFrom(null, 0, 1e12),
      lastMs: fc.constantFrom(null, 0, 1e12),
      refusedMost: fc.array(client, { maxLength: 5 }),
      admitted: fc.constant(new Uint8Array()),
      admissions: fc.record({ refused: count, mostInWindow: ofEach, clientsOver: count }),
    })
    const compared = fc.uniqueArray(
      fc.record({ algorithm, refused: count, mostInWindow: ofEach, clientsOver: count }),
      { minLength: 1, selector: (one) => one.algorithm },
    )
    const more = fc.record({
      timeline,
      compared,
      key: fc.constantFrom('ip', 'ip+user+path'),
      usersMissing: count,
    })
    return fc.tuple(found, more)
  }
  const unparsed = fc.record({
    count,
    examples: fc.array(fc.record({ line: count, text }), { maxLength: 2 }),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(1, 2, 3, 16).chain(foundBy),
      unparsed,
      fc.constantFrom(40, 41, 59, 60, 80, 120),
      fc.integer({ min: 1, max: 9 }),
      ([found, more], unparsed, width, top) => {
        assert.ok(widest(reported(found, unparsed, top, width, more)) <= width)
      },
    ),
  )
})

test('a long name is cut with an ellipsis and uses the available width', () => {
  const long = { client: 'x'.repeat(300), requests: 9, refused: 5, refusedBy: [5], peaks: [9] }
  for (const width of [40, 80, 120]) {
    const text = reported({ ...RESULTS, refusedMost: [long] }, NONE, 10, width)
    assert.is(widest(text), width)
    assert.match(text, /│ x+… │/)
  }
})

test('control characters of a log are escaped', () => {
  const hostile = '\x1b[2J\x07\x9b31m\u202e\n'
  const found = {
    ...RESULTS,
    refusedMost: [{ client: hostile, requests: 9, refused: 5, refusedBy: [5], peaks: [9] }],
  }
  const text = reported(found, { count: 1, examples: [{ line: 1, text: hostile }] }, 10, 120)
  assert.not.match(text, /[^ -~\n─-╿]/)
  assert.match(text, '│ \\u001b[2J\\u0007\\u009b31m\\u202e  │')
  assert.match(text, '  line 1: \\u001b[2J\\u0007\\u009b31m\\u202e\\u000a\n')
})

test('without refusals there is no table', () => {
  const text = reported({ ...RESULTS, refused: 0, refusedClients: 0, refusedMost: [] }, NONE, 10, 80)
  assert.not.match(text, '│')
  assert.match(text, 'requests refused  0 (0.0 %)')
})

test('an empty log has no dates and no percentages', () => {
  const empty = { ...RESULTS, requests: 0, clients: 0, refused: 0, refusedClients: 0, exactRefused: 0 }
  const text = reported({ ...empty, firstMs: null, lastMs: null, refusedMost: [] }, NONE, 10, 80)
  assert.match(text, 'requests          0\nclients           0\nrequests refused  0\nclients refused   0\n')
  assert.not.match(text, 'NaN')
})

test('a violated guarantee is reported', () => {
  const verdicts = (changes: Partial<Replay>) => reported({ ...RESULTS, ...changes }, NONE, 10, 80)
  assert.match(verdicts({ wronglyAdmitted: 3 }), 'wrongly admitted  3 (violates a guarantee)')
  assert.match(verdicts({ wronglyAdmitted: 3, edge: 'smooth' }), '3 (possible with the smooth edge)')
  assert.match(verdicts({ refusedTooEarly: 2 }), '6 (2 more than 1s early, which violates a guarantee')
})

test('only the top clients are listed, and the title has their number', () => {
  const text = reported(RESULTS, NONE, 1, 80)
  assert.match(text, 'The client with the most refusals:')
  assert.not.match(text, '2001:db8:5::c0de')
  assert.match(reported(RESULTS, NONE, 2, 80), 'The refused clients:')
})

test('at most a thousand clients are listed', () => {
  const refusedMost = Array.from({ length: 1_200 }, (_, i) => ({
    client: `c${i}.`,
    requests: 2,
    refused: 1,
    refusedBy: [1],
    peaks: [2],
  }))
  const text = reported({ ...RESULTS, refusedMost }, NONE, 1e9, 80)
  assert.match(text, 'The 1,000 clients with the most refusals:')
  assert.match(text, '│ c999. ')
  assert.not.match(text, 'c1000.')
})

const TIMELINE = {
  firstMs: Date.UTC(2026, 2, 9, 14),
  bucketMs: 300_000,
  admitted: [100, 189, 0],
  refused: [0, 64, 48],
}

test('the chart of admissions and refusals is between the figures and the accuracy', () => {
  const text = reported(RESULTS, NONE, 10, 40, { timeline: TIMELINE })
  assert.match(
    text,
    `
Requests per 5m (UTC):
200┤           ┏━━━━━━━━━━┓
   │           ┃          ┃
   │           ┃          ┃
   │           ┃          ┃
100┤━━━━━━━━━━━┛          ┃
   │                      ┃
   │           ×××××××××××┃
   │           ×          ┃××××××××××
   │           ×          ┃
  0┤×××××××××××           ┗━━━━━━━━━━
   └┬──────────┬──────────┬──────────▶
    14:00    14:05      14:10
━ admitted   × refused

Accuracy`,
  )
  assert.ok(widest(text) <= 40)
})

test('colour changes only the chart, and not its text', () => {
  const found = { ...LOG, replay: RESULTS, unparsed: NONE, key: 'ip', usersMissing: 0, timeline: TIMELINE }
  const [plain, coloured] = [false, true].map((colour) => report(found, { top: 10, width: 80, colour }))
  assert.is(stripVTControlCharacters(coloured!), plain)
  assert.is.not(coloured, plain)
})

test('without a span of time there is no chart', () => {
  const once = { ...TIMELINE, admitted: [5], refused: [3] }
  assert.not.match(reported(RESULTS, NONE, 10, 80, { timeline: once }), 'Requests per')
})

test('keys other than ip are called keys, and requests without a user are counted', () => {
  const text = reported(RESULTS, NONE, 10, 80, { key: 'user+path', usersMissing: 300 })
  assert.match(text, /^Limit: 10 requests per key \(user\+path\) in any 1m, strict/)
  assert.match(text, 'without a user    300 (74.8 %), counted by ip\nkeys              36\n')
  assert.match(text, 'keys refused      2 (5.6 %)')
  assert.match(text, 'The refused keys:\n┌')
  assert.match(text, '│ key  ')
})

const BY_TWO: Replay = {
  ...RESULTS,
  admissions: { refused: 112, mostInWindow: [10, 1_000], clientsOver: 0 },
  rules: [
    {
      ...{ name: '10/1s', algorithm: 'sliding-window', limit: 10, windowMs: 1_000, granularityMs: 50 },
      ...{ refused: 90, refusedAlone: 70, refusedClients: 1 },
    },
    {
      ...{
        name: '1000/1h',
        algorithm: 'sliding-window',
        limit: 1_000,
        windowMs: 3_600_000,
        granularityMs: 60_000,
      },
      ...{ refused: 42, refusedAlone: 22, refusedClients: 2 },
    },
  ],
  refusedMost: [
    { client: '198.51.100.23', requests: 1_104, refused: 64, refusedBy: [50, 30], peaks: [26, 1_026] },
    { client: '2001:db8:5::c0de', requests: 55, refused: 48, refusedBy: [40, 12], peaks: [11, 55] },
  ],
}

test('a report of several rules says what each refused, of all requests and of each client', () => {
  const fixed = { algorithm: 'fixed-window', refused: 90, mostInWindow: [20, 1_001], clientsOver: 3 } as const
  assert.is(
    reported(BY_TWO, NONE, 10, 80, { compared: [fixed] }),
    `Limits: requests per client, all or nothing, strict edge
  10 in any 1s     granularity 50ms
  1,000 in any 1h  granularity 1m

requests          401
from (UTC)        2026-03-09 14:00:10
to (UTC)          2026-03-09 14:10:09
clients           36
requests refused  112 (27.9 %)
clients refused   2 (5.6 %)

Refusals by rule (several rules may refuse one request):
┌─────────┬─────────┬────────────┬─────────┐
│ rule    │ refused │ only by it │ clients │
├─────────┼─────────┼────────────┼─────────┤
│ 10/1s   │      90 │         70 │       1 │
│ 1000/1h │      42 │         22 │       2 │
└─────────┴─────────┴────────────┴─────────┘

Accuracy, compared with an exact log of the admitted requests:
  wrongly admitted  0
  wrongly refused   6 (none more than one granularity early)
An exact sliding log would have refused 109 (27.2 %).

The same requests by each algorithm:
┌────────────────┬─────────┬────────────┬────────────┬──────────────┐
│ algorithm      │ refused │ most in 1s │ most in 1h │ clients over │
├────────────────┼─────────┼────────────┼────────────┼──────────────┤
│ sliding-window │     112 │         10 │      1,000 │            0 │
│ fixed-window   │      90 │         20 │      1,001 │            3 │
└────────────────┴─────────┴────────────┴────────────┴──────────────┘

The refused clients:
┌──────────────────┬──────────┬─────────┬──────────┬────────────┐
│ client           │ requests │ refused │ by 10/1s │ by 1000/1h │
├──────────────────┼──────────┼─────────┼──────────┼────────────┤
│ 198.51.100.23    │    1,104 │      64 │       50 │         30 │
│ 2001:db8:5::c0de │       55 │      48 │       40 │         12 │
└──────────────────┴──────────┴─────────┴──────────┴────────────┘
`,
  )
})

test('with fewer columns the tables of several rules leave out figures, but not the refusals', () => {
  const at60 = reported(BY_TWO, NONE, 10, 60)
  assert.match(at60, '│ client           │ refused │ by 10/1s │ by 1000/1h │')
  const at40 = reported(BY_TWO, NONE, 10, 40)
  assert.match(at40, '│ rule    │ refused │ only by it │')
  assert.match(at40, '│ client           │ refused │')
})

test.run()
