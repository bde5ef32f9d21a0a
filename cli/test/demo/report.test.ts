import { stripVTControlCharacters } from 'node:util'
import { exitCodeOf } from 'millrace-cli/dist/demo/command.js'
import type { DemoResult } from 'millrace-cli/dist/demo/demo.js'
import { report } from 'millrace-cli/dist/demo/report.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const server = {
  seconds: 5,
  requests: 100_000,
  requestsPerSecond: 20_000,
  p50Ms: 0.4,
  p99Ms: 12.3,
  longestPauseMs: 7,
}
const held: DemoResult = {
  limit: 100,
  reached: true,
  inFlight: 1,
  windowMs: 1_000,
  granularityMs: 1_000 / 60,
  threads: 1,
  engine: 'inline',
  polite: { clients: 40, requests: 1_234_567, admitted: 1_234_567, refused: 0, failed: 0, peak: 66 },
  greedy: { clients: 10, requests: 7_654_321, admitted: 5_000, refused: 7_649_321, failed: 0, peak: 100 },
  withLimiter: server,
  withoutLimiter: server,
  mostInAnyWindow: 100,
  held: true,
  stoppedEarly: false,
  history: { stepMs: 100, used: [0, 50, 100, 100, 99, 100] },
}
const notReached: DemoResult = { ...held, reached: false, inFlight: 64, mostInAnyWindow: 99 }
const broken: DemoResult = { ...held, mostInAnyWindow: 101, held: false }

for (const width of [40, 50, 80, 120]) {
  test(`no line is wider than ${width} columns`, () => {
    for (const result of [held, notReached]) {
      for (const line of stripVTControlCharacters(report(result, width, true)).split('\n'))
        assert.ok(line.length <= width, `${line.length}: ${line}`)
    }
  })
}

test('colour does not change the text', () => {
  assert.is(stripVTControlCharacters(report(held, 80, true)), report(held, 80, false))
  assert.is.not(report(held, 80, true), report(held, 80, false))
})

test('a broken limit is reported and sets the exit code', () => {
  assert.match(report(broken, 120, false), /^BROKEN: the most .* in any 1s is 101 \(limit 100\)/m)
  assert.match(report(held, 120, false), /^Held: the most .* in any 1s is 100 \(limit 100\)/m)
  assert.equal(
    [held, { ...held, stoppedEarly: true }, broken, { ...broken, stoppedEarly: true }].map(exitCodeOf),
    [0, 130, 1, 1],
  )
})

test('a limit that was not reached is told apart from one that held, and sets the exit code', () => {
  const text = report(notReached, 200, false)
  assert.match(text, /^No request was refused, so the load was raised: .* had 64 requests under way/m)
  assert.match(text, /^Not reached: the most .* in any 1s is 99 \(limit 100\)/m)
  assert.match(text, /^This shows nothing\. Choose a lower --limit or a longer --window\.$/m)
  assert.is(exitCodeOf(notReached), 1)
  assert.is(exitCodeOf({ ...notReached, stoppedEarly: true }), 130)
  const raised = report({ ...held, inFlight: 8 }, 200, false)
  assert.match(raised, /the load was raised: .* 8 requests under way at a time\.\nHeld: /)
  assert.not.match(report(held, 200, false), /raised|nothing/)
})

test('failed requests are shown if there are any', () => {
  assert.not.match(report(held, 80, false), /failed/)
  assert.match(report({ ...held, polite: { ...held.polite, failed: 3 } }, 80, false), /failed .* 3 .* 0/)
})

test.run()
