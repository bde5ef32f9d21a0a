import type { Replay } from 'millrace-cli/dist/replay/replay.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { NONE, RESULTS, reported, widest } from './results.js'

const COMPARED = [
  { algorithm: 'fixed-window', refused: 90, mostInWindow: [20], clientsOver: 3 },
  { algorithm: 'token-bucket', refused: 1_085, mostInWindow: [19], clientsOver: 2 },
] as const

test('each algorithm has a line, the replayed one the first', () => {
  const text = reported(RESULTS, NONE, 10, 60, { compared: COMPARED })
  assert.match(
    text,
    `
The same requests by each algorithm (limit 10 in 1m):
┌────────────────┬─────────┬────────────┬──────────────┐
│ algorithm      │ refused │ most in 1m │ clients over │
├────────────────┼─────────┼────────────┼──────────────┤
│ sliding-window │     112 │         10 │            0 │
│ fixed-window   │      90 │         20 │            3 │
│ token-bucket   │   1,085 │         19 │            2 │
└────────────────┴─────────┴────────────┴──────────────┘
`,
  )
  const at40 = reported(RESULTS, NONE, 10, 40, { compared: COMPARED })
  assert.match(at40, '│ algorithm      │ refused │')
  assert.ok(widest(at40) <= 40)
})

test('the replayed algorithm has one line if it is compared, too', () => {
  const again = { algorithm: 'sliding-window', ...RESULTS.admissions } as const
  const text = reported(RESULTS, NONE, 10, 80, { compared: [again, ...COMPARED] })
  assert.is(text, reported(RESULTS, NONE, 10, 80, { compared: COMPARED }))
})

test('the head names the algorithm and its options, and what it may admit is no violation', () => {
  const headOf = (...rules: Partial<Replay['rules'][number]>[]) =>
    reported(
      { ...RESULTS, refusedMost: [], rules: rules.map((rule) => ({ ...RESULTS.rules[0]!, ...rule })) },
      NONE,
      10,
      90,
    )
  assert.match(
    headOf({ algorithm: 'sliding-counter' }),
    /^Limit: 10 requests per client in 1m, sliding-counter\n/,
  )
  const first = headOf({ algorithm: 'fixed-window', align: 'first' })
  assert.match(first, /^Limit: 10 requests per client in 1m, fixed-window, align first\n/)
  const bucket = { algorithm: 'token-bucket', burst: 1_500 } as const
  assert.match(headOf(bucket), /^Limit: 10 requests per client in 1m, token-bucket, burst 1,500\n/)
  assert.match(
    headOf(bucket, { ...bucket, limit: 20, windowMs: 1_000 }),
    /^Limits: .*, all or nothing\n {2}10 in 1m {2}token-bucket, burst 1,500\n {2}20 in 1s {2}token-bucket, burst 1,500\n/,
  )
  const rules = [{ ...RESULTS.rules[0]!, ...bucket }]
  const text = reported({ ...RESULTS, rules, wronglyAdmitted: 3, refusedTooEarly: 2 }, NONE, 10, 80)
  assert.match(text, '  wrongly admitted  3 (possible with token-bucket)\n  wrongly refused   6\n')
})

test.run()
