import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { timesOf, timesOfBeyond } from '../../bench/benchmark.js'
import { median, summarize } from '../../bench/statistics.js'
import { judge } from '../../bench/verdict.js'

test('the median is the middle value, in whatever order they come', () => {
  assert.is(median([30, 10, 20]), 20)
  assert.is(median([7]), 7)
})

test('the median of an even count is the mean of the two in the middle', () => {
  assert.is(median([4, 1, 100, 2]), 3)
})

test('the median leaves its argument in order', () => {
  const values = [3, 1, 2]
  median(values)
  assert.equal(values, [3, 1, 2])
})

test('the median of nothing is refused', () => {
  assert.throws(
    () => median([]),
    (error: unknown) => error instanceof RangeError,
  )
})

test('a summary spans from the least to the most', () => {
  assert.equal(summarize([5, 1, 3]), { median: 3, min: 1, max: 5 })
})

test('a ratio is taken within each round, not between medians', () => {
  const rounds = [
    { ours: { ns: 100 }, theirs: { ns: 100 } },
    { ours: { ns: 400 }, theirs: { ns: 200 } }, // the machine was slow here, for both
    { ours: { ns: 150 }, theirs: { ns: 50 } },
  ]
  const verdict = judge({ what: '', unit: 'x', value: timesOf('ours', 'theirs'), atMost: 2 }, rounds)
  assert.equal(verdict.value, { median: 2, min: 1, max: 3 })
  assert.is(verdict.met, true)
  assert.is(verdict.missedBy, 0)
})

test('what both sides share can be taken out of a ratio', () => {
  const round = { ours: { ns: 90 }, theirs: { ns: 60 }, making: { ns: 50 } }
  assert.is(timesOfBeyond('ours', 'theirs', 'making')(round), 4)
})

test('a missed bound says by what part of it', () => {
  const rounds = [{ ours: { ns: 3 }, theirs: { ns: 2 } }]
  const most = judge({ what: '', unit: 'x', value: timesOf('ours', 'theirs'), atMost: 1 }, rounds)
  assert.is(most.met, false)
  assert.is(most.missedBy, 0.5)
  const least = judge({ what: '', unit: 'x', value: timesOf('ours', 'theirs'), atLeast: 2 }, rounds)
  assert.is(least.met, false)
  assert.is(least.missedBy, 0.25)
})

test('without a bound there is no verdict', () => {
  const verdict = judge({ what: '', unit: 'ns', value: () => 1 }, [{}])
  assert.is(verdict.met, undefined)
  assert.is(verdict.missedBy, undefined)
})

test('a figure that nobody measured is an error, not NaN', () => {
  assert.throws(() => timesOf('ours', 'nobody')({ ours: { ns: 1 } }), /no figure 'ns' of 'nobody'/)
})

test.run()
