import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { figureOf, type Round, ratioAbove, ratioOf } from '../../bench/benchmark.js'
import { outcome } from '../../bench/format.js'
import { median, summarize } from '../../bench/statistics.js'
import { isDecided, judge } from '../../bench/verdict.js'

test('the median is the middle value, in any order', () => {
  assert.is(median([30, 10, 20]), 20)
  assert.is(median([7]), 7)
})

test('the median of an even count is the mean of the two in the middle', () => {
  assert.is(median([4, 1, 100, 2]), 3)
})

test('the median does not reorder its argument', () => {
  const values = [3, 1, 2]
  median(values)
  assert.equal(values, [3, 1, 2])
})

test('the median of no values throws', () => {
  assert.throws(
    () => median([]),
    (error: unknown) => error instanceof RangeError,
  )
})

test('a summary spans from the least to the most', () => {
  assert.equal(summarize([5, 1, 3]), { median: 3, min: 1, max: 5 })
})

test('a ratio is computed within each round, not between medians', () => {
  const rounds = [
    { ours: { ns: 100 }, theirs: { ns: 100 } },
    { ours: { ns: 400 }, theirs: { ns: 200 } }, // the machine was slow here, for both
    { ours: { ns: 150 }, theirs: { ns: 50 } },
  ]
  const verdict = judge({ label: '', unit: 'x', value: ratioOf('ours', 'theirs'), atMost: 2 }, rounds)
  assert.equal(verdict.value, { median: 2, min: 1, max: 3 })
  assert.is(verdict.met, true)
  assert.is(verdict.missedBy, 0)
})

test('ratioAbove subtracts the shared time from both sides', () => {
  const round = { ours: { ns: 90 }, theirs: { ns: 60 }, making: { ns: 50 } }
  assert.is(ratioAbove('ours', 'theirs', 'making')(round), 4)
})

test('missedBy is the distance as a fraction of the bound', () => {
  const rounds = [{ ours: { ns: 3 }, theirs: { ns: 2 } }]
  const most = judge({ label: '', unit: 'x', value: ratioOf('ours', 'theirs'), atMost: 1 }, rounds)
  assert.is(most.met, false)
  assert.is(most.missedBy, 0.5)
  const least = judge({ label: '', unit: 'x', value: ratioOf('ours', 'theirs'), atLeast: 2 }, rounds)
  assert.is(least.met, false)
  assert.is(least.missedBy, 0.25)
})

test('a goal without a bound is neither met nor missed', () => {
  const verdict = judge({ label: '', unit: 'ns', value: () => 1 }, [{}])
  assert.is(verdict.met, undefined)
  assert.is(verdict.missedBy, undefined)
})

test('a goal whose contenders differ less than one from itself is not judged, and all its rounds are measured', () => {
  const rounds = [1, 2, 3].map((ns) => ({ ours: { ns }, constant: { ns: ns / 2 } }))
  const goalBeside = (difference: number) =>
    ({
      label: '',
      unit: 'x',
      value: () => 2,
      atMost: 3,
      noise: { difference: () => difference, itself: (round: Round) => figureOf(round, 'constant') },
    }) as const
  const noisy = judge(goalBeside(-1), rounds) // the range of the constant is 1
  assert.ok(noisy.isTooNoisy)
  assert.is(noisy.met, undefined)
  assert.is(outcome(noisy), 'too noisy to tell')
  const quiet = judge(goalBeside(-1.1), rounds)
  assert.is(quiet.met, true)
  assert.is(outcome(quiet), 'met')
  assert.not(isDecided([goalBeside(5)], rounds, 4))
})

test('a missing figure is an error, not NaN', () => {
  assert.throws(() => ratioOf('ours', 'nobody')({ ours: { ns: 1 } }), /no figure 'ns' of 'nobody'/)
})

test('a case is decided when more than half of its rounds agree about every bound', () => {
  const roundsOf = (...values: number[]) => values.map((ns) => ({ ours: { ns }, others: { ns: 10 - ns } }))
  const value = (round: Round) => figureOf(round, 'ours')
  const goal = { label: '', unit: 'ns', value, atMost: 5 } as const
  assert.not(isDecided([goal], roundsOf(1, 2), 5))
  assert.ok(isDecided([goal], roundsOf(1, 2, 3), 5))
  assert.ok(isDecided([goal], roundsOf(6, 7, 8), 5))
  assert.not(isDecided([goal], roundsOf(1, 2, 6), 5))
  assert.not(isDecided([goal], roundsOf(1, 6, 2, 3), 5))
  assert.not(isDecided([goal, { ...goal, atMost: 2 }], roundsOf(1, 2, 3), 5))
  assert.ok(isDecided([goal, { label: '', unit: 'ns', value }], roundsOf(1, 2, 3), 5))
  assert.not(isDecided([{ label: '', unit: 'ns', value }], roundsOf(1, 2, 3, 4, 5), 5))
})

test('with two builds a goal is decided when one meets it in every round, or none in any', () => {
  const roundsOf = (...values: [number, number][]) => values.map(([a, b]) => ({ a: { ns: a }, b: { ns: b } }))
  const value = (round: Round) => figureOf(round, 'a')
  const withoutAddon = (round: Round) => figureOf(round, 'b')
  const goal = { label: '', unit: 'ns', value, withoutAddon, atLeast: 5 } as const
  assert.ok(isDecided([goal], roundsOf([1, 5], [9, 6], [2, 7]), 5))
  assert.ok(isDecided([goal], roundsOf([1, 4], [2, 3], [3, 2]), 5))
  assert.not(isDecided([goal], roundsOf([1, 5], [2, 6], [3, 2]), 5))
})

test.run()
