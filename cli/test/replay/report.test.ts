import { stripVTControlCharacters } from 'node:util'
import * as fc from 'fast-check'
import type { Replay } from 'millrace-cli/dist/replay/replay.js'
import { type Found, report } from 'millrace-cli/dist/replay/report.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const FOUND: Replay = {
  requests: 401,
  clients: 36,
  refused: 112,
  refusedClients: 2,
  exactRefused: 109,
  wronglyAdmitted: 0,
  wronglyRefused: 6,
  refusedTooEarly: 0,
  limit: 10,
  windowMs: 60_000,
  granularityMs: 1_000,
  edge: 'strict',
  firstMs: Date.UTC(2026, 2, 9, 14, 0, 10),
  lastMs: Date.UTC(2026, 2, 9, 14, 10, 9),
  refusedMost: [
    { client: '198.51.100.23', requests: 1_104, refused: 64, peak: 26 },
    { client: '2001:db8:5::c0de', requests: 55, refused: 48, peak: 11 },
  ],
  admitted: new Uint8Array(),
}
const NONE = { count: 0, examples: [] }
const reported = (
  replay: Replay,
  unparsed: Found['unparsed'],
  top: number,
  width: number,
  more: Partial<Found> = {},
) => report({ replay, unparsed, key: 'ip', usersMissing: 0, ...more }, { top, width, colour: false })
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length))

test('a report on 80 columns says what was refused, how exactly, and whom', () => {
  const unparsed = { count: 1, examples: [{ line: 58, text: '203.0.113.9 - - [09/Mar' }] }
  assert.is(
    reported(FOUND, unparsed, 10, 80),
    `10 in 1m a client, strict, granules of 1s

requests          401
from (UTC)        2026-03-09 14:00:10
to (UTC)          2026-03-09 14:10:09
clients           36
requests refused  112 (27.9 %)
clients refused   2 (5.6 %)
unparsed lines    1
  line 58: 203.0.113.9 - - [09/Mar

How exact, judged by a log of what this limiter had admitted:
  wrongly admitted  0
  wrongly refused   6 (all at most one granule early)
An exact sliding log on its own would have refused 109 (27.2 %).

The clients refused:
┌──────────────────┬──────────┬─────────┬────────────────────┐
│ client           │ requests │ refused │ most in one window │
├──────────────────┼──────────┼─────────┼────────────────────┤
│ 198.51.100.23    │    1,104 │      64 │                 26 │
│ 2001:db8:5::c0de │       55 │      48 │                 11 │
└──────────────────┴──────────┴─────────┴────────────────────┘
`,
  )
})

test('on 40 columns the table keeps the client and what it was refused', () => {
  const text = reported(FOUND, NONE, 10, 40)
  assert.match(text, '│ client           │ refused │')
  assert.match(text, 'from (UTC)        2026-03-09 14:00:10\n')
  assert.ok(widest(text) <= 40)
})

test('no line is wider than asked for, whatever the clients and the lines of the log', () => {
  const count = fc.integer({ min: 0, max: 1e9 })
  const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 300 }))
  const refusedMost = fc.array(fc.record({ client: text, requests: count, refused: count, peak: count }), {
    maxLength: 5,
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
    limit: fc.integer({ min: 1, max: 2 ** 22 - 2 }),
    windowMs: fc.integer({ min: 1, max: 1e12 }),
    granularityMs: fc.double({ min: 0.001, max: 1e12, noNaN: true }),
    edge: fc.constantFrom('strict' as const, 'smooth' as const),
    firstMs: fc.constantFrom(null, 0, 1e12),
    lastMs: fc.constantFrom(null, 0, 1e12),
    refusedMost,
    admitted: fc.constant(new Uint8Array()),
  })
  const spans = { firstMs: fc.constant(0), bucketMs: fc.integer({ min: 1_000, max: 1e10 }) }
  const some = { minLength: 3, maxLength: 3 }
  const timeline = fc.record({ ...spans, admitted: fc.array(count, some), refused: fc.array(count, some) })
  const fixedWindow = fc.record({ refused: count, mostInWindow: count, clientsOver: count })
  const more = fc.record({
    timeline,
    fixedWindow,
    key: fc.constantFrom('ip', 'ip+user+path'),
    usersMissing: count,
  })
  const unparsed = fc.record({
    count,
    examples: fc.array(fc.record({ line: count, text }), { maxLength: 2 }),
  })
  fc.assert(
    fc.property(
      found,
      unparsed,
      fc.constantFrom(40, 41, 59, 60, 80, 120),
      fc.integer({ min: 1, max: 9 }),
      more,
      (found, unparsed, width, top, more) => {
        assert.ok(widest(reported(found, unparsed, top, width, more)) <= width)
      },
    ),
  )
})

test('a name too long for its column ends in an ellipsis, and has all the room there is', () => {
  const long = { client: 'x'.repeat(300), requests: 9, refused: 5, peak: 9 }
  for (const width of [40, 80, 120]) {
    const text = reported({ ...FOUND, refusedMost: [long] }, NONE, 10, width)
    assert.is(widest(text), width)
    assert.match(text, /│ x+… │/)
  }
})

test('control characters of a log reach the report as escapes', () => {
  const hostile = '\x1b[2J\x07\x9b31m\u202e\n'
  const found = { ...FOUND, refusedMost: [{ client: hostile, requests: 9, refused: 5, peak: 9 }] }
  const text = reported(found, { count: 1, examples: [{ line: 1, text: hostile }] }, 10, 120)
  assert.not.match(text, /[^ -~\n─-╿]/)
  assert.match(text, '│ \\u001b[2J\\u0007\\u009b31m\\u202e  │')
  assert.match(text, '  line 1: \\u001b[2J\\u0007\\u009b31m\\u202e\\u000a\n')
})

test('where nobody was refused there is no table', () => {
  const text = reported({ ...FOUND, refused: 0, refusedClients: 0, refusedMost: [] }, NONE, 10, 80)
  assert.not.match(text, '│')
  assert.match(text, 'requests refused  0 (0.0 %)')
})

test('an empty log has no dates and no shares', () => {
  const empty = { ...FOUND, requests: 0, clients: 0, refused: 0, refusedClients: 0, exactRefused: 0 }
  const text = reported({ ...empty, firstMs: null, lastMs: null, refusedMost: [] }, NONE, 10, 80)
  assert.match(text, 'requests          0\nclients           0\nrequests refused  0\nclients refused   0\n')
  assert.not.match(text, 'NaN')
})

test('a broken promise is called one', () => {
  const verdicts = (changes: Partial<Replay>) => reported({ ...FOUND, ...changes }, NONE, 10, 80)
  assert.match(verdicts({ wronglyAdmitted: 3 }), 'wrongly admitted  3 (a promise is broken)')
  assert.match(verdicts({ wronglyAdmitted: 3, edge: 'smooth' }), '3 (smooth may, by up to a granule)')
  assert.match(verdicts({ refusedTooEarly: 2 }), '6 (2 more than a granule early: a promise is')
})

test('only the top clients are listed, and the title says how many', () => {
  const text = reported(FOUND, NONE, 1, 80)
  assert.match(text, 'The client refused most:')
  assert.not.match(text, '2001:db8:5::c0de')
  assert.match(reported(FOUND, NONE, 2, 80), 'The clients refused:')
})

test('of many refused clients at most a thousand are listed', () => {
  const refusedMost = Array.from({ length: 1_200 }, (_, i) => ({
    client: `c${i}.`,
    requests: 2,
    refused: 1,
    peak: 2,
  }))
  const text = reported({ ...FOUND, refusedMost }, NONE, 1e9, 80)
  assert.match(text, 'The 1,000 clients refused most:')
  assert.match(text, '│ c999. ')
  assert.not.match(text, 'c1000.')
})

const TIMELINE = {
  firstMs: Date.UTC(2026, 2, 9, 14),
  bucketMs: 300_000,
  admitted: [100, 189, 0],
  refused: [0, 64, 48],
}

test('the chart shows what was admitted and refused over time, between the figures and how exact they are', () => {
  const text = reported(FOUND, NONE, 10, 40, { timeline: TIMELINE })
  assert.match(
    text,
    `
Requests in each 5m, UTC:
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

How exact`,
  )
  assert.ok(widest(text) <= 40)
})

test('colour changes nothing but the chart, and of that not the text', () => {
  const found = { replay: FOUND, unparsed: NONE, key: 'ip', usersMissing: 0, timeline: TIMELINE }
  const [plain, coloured] = [false, true].map((colour) => report(found, { top: 10, width: 80, colour }))
  assert.is(stripVTControlCharacters(coloured!), plain)
  assert.is.not(coloured, plain)
})

test('where all happened at once there is no chart', () => {
  const once = { ...TIMELINE, admitted: [5], refused: [3] }
  assert.not.match(reported(FOUND, NONE, 10, 80, { timeline: once }), 'Requests in each')
})

test('a fixed window is told beside the limit that it would have broken', () => {
  const fixedWindow = { refused: 90, mostInWindow: 20, clientsOver: 3 }
  assert.match(
    reported(FOUND, NONE, 10, 40, { fixedWindow }),
    `
With a fixed window of 1m instead:
  requests refused    90 (22.4 %)
  most in any window  20 (limit 10)
  clients over limit  3 (8.3 %)
`,
  )
})

test('what is no address is called a key, and those without a user are told', () => {
  const text = reported(FOUND, NONE, 10, 80, { key: 'user+path', usersMissing: 300 })
  assert.match(text, /^10 in 1m a key \(user\+path\), strict/)
  assert.match(text, 'without a user    300 (74.8 %), by ip\nkeys              36\n')
  assert.match(text, 'keys refused      2 (5.6 %)')
  assert.match(text, 'The keys refused:\n┌')
  assert.match(text, '│ key  ')
})

test.run()
