import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Benchmark, ROUNDS, ROUNDS_WITHOUT_BOUND, ratioOf, roundsOf } from '../../bench/benchmark.js'
import { renderCase, reportCase, reportSkipped } from '../../bench/report.js'

const LONG_NAME = 'another way with a name that is longer than most'

const benchmark: Benchmark = {
  title: 'two ways of doing nothing',
  units: { ns: 'nanoseconds each' },
  contenders: ['one way', LONG_NAME].map((name) => ({
    name,
    measure: () => ({ ns: 1 }),
  })),
  goals: [
    {
      target: 'P0',
      label: 'one way: times the other',
      unit: 'x',
      value: ratioOf('one way', LONG_NAME),
      atMost: 2,
      stretch: 1,
    },
  ],
}
const rounds = [{ 'one way': { ns: 30 }, [LONG_NAME]: { ns: 10 } }]
const report = reportCase('nothing', benchmark, rounds, 90_000)

test('a case shows each figure, and the distance from a missed target', () => {
  const text = renderCase(report, 120)
  assert.match(text, 'nothing: two ways of doing nothing')
  assert.match(text, /one way .*30\.0/)
  assert.match(text, /P0 one way.*3\.00 x.*<= 2 x \(stretch 1\).*missed by 50 %/)
})

test('no line is wider than the terminal, and a narrow one loses no text', () => {
  for (const columns of [120, 80, 60, 40]) {
    const text = renderCase(report, columns)
    if (columns >= 60)
      assert.ok(
        text.split('\n').every((line) => line.length <= columns),
        `${columns} columns`,
      )
    assert.match(text, 'missed by 50 %')
    assert.match(text, '30.0')
  }
})

test('a case says how many rounds it has, and how long they took', () => {
  assert.match(renderCase(report, 120), 'Rounds: 1. Duration: 90.0 seconds.')
  assert.match(renderCase({ ...report, tookMs: 150_000 }, 120), 'Rounds: 1. Duration: 2.5 minutes.')
})

test('only a case with a bound has more rounds, unless it sets them', () => {
  const without = {
    ...benchmark,
    goals: benchmark.goals.map(({ label, unit, value }) => ({ label, unit, value })),
  }
  assert.is(roundsOf(benchmark, { quick: false }), ROUNDS.full)
  assert.is(roundsOf(without, { quick: false }), ROUNDS_WITHOUT_BOUND.full)
  assert.ok(ROUNDS_WITHOUT_BOUND.full < ROUNDS.full)
  const own = { ...benchmark, rounds: { full: 2, quick: 1 } }
  assert.equal([roundsOf(own, { quick: false }), roundsOf(own, { quick: true })], [2, 1])
})

test('a skipped case gives its reason', () => {
  const text = renderCase(reportSkipped('nothing', benchmark, 'there is no compiler'), 80)
  assert.match(text, 'nothing: two ways of doing nothing')
  assert.match(text, 'skipped: there is no compiler')
})

test.run()
