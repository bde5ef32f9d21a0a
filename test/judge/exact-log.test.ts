// run: typescript, also-long
// The judge that other tests use, compared with simple sums.

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { ExactLog } from './exact-log.js'
import { mostIn, WindowJudge } from './window-judge.js'

interface Entry {
  at: number
  units: number
}
const entry = fc.record({ at: fc.integer({ min: 0, max: 60 }), units: fc.integer({ min: 1, max: 9 }) })
const window = fc.integer({ min: 1, max: 30 })

const usedOf = (entries: readonly Entry[], at: number, window: number) =>
  entries
    .filter((entry) => entry.at > at - window && entry.at <= at)
    .reduce((sum, { units }) => sum + units, 0)

test('units added in any order count in every window that contains their moments', () => {
  fc.assert(
    fc.property(fc.array(entry), window, (entries, window) => {
      const log = new ExactLog()
      for (const [i, { at, units }] of entries.entries()) {
        log.add(at, units)
        const known = entries.slice(0, i + 1)
        assert.is(log.newest, Math.max(...known.map(({ at }) => at)))
        const ends = [...Array(100).keys()]
        for (const end of ends) assert.is(log.used(end, window), usedOf(known, end, window))
        const around = ends.filter((end) => end >= at && end < at + window)
        assert.is(log.mostAround(at, window), Math.max(...around.map((end) => usedOf(known, end, window))))
      }
      log.clear()
      assert.equal([log.newest, log.used(60, 61)], [Number.NEGATIVE_INFINITY, 0])
    }),
  )
})

test('forgotten units are missing from no later window', () => {
  const log = new ExactLog()
  for (let at = 0; at < 1_000; at++) {
    log.add(at, 2)
    log.forget(at - 10)
    assert.is(log.used(at, 10), 2 * Math.min(10, at + 1))
  }
  assert.is(log.describe(999, 3), '2 at 997, 2 at 998, 2 at 999')
})

test('the window judge judges every window of every column, and describes those over the limit', () => {
  const ticks = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(ticks, ticks, window, (first, second, width) => {
      const [limit, columns] = [12, [first, second]]
      const judge = new WindowJudge(limit, width, 2)
      const sums: number[] = []
      for (const [column, units] of columns.entries()) {
        const entries = units.map((units, at) => ({ at, units }))
        for (const { at, units } of entries) judge.add(column, at, units)
        const ends = entries.filter(({ units }) => units > 0)
        const own = ends.map(({ at }) => usedOf(entries, at, width))
        assert.is(mostIn(Int32Array.from(units), width), Math.max(0, ...own))
        sums.push(...own)
      }
      assert.is(judge.windows, sums.length)
      assert.is(judge.fullest, Math.max(0, ...sums))
      assert.is(judge.over, sums.filter((sum) => sum > limit).length)
      assert.is(judge.complaints.length, Math.min(5, judge.over))
      assert.is(
        judge.units,
        usedOf(
          [...first, ...second].map((units) => ({ at: 0, units })),
          0,
          1,
        ),
      )
    }),
  )
})

test('the description of a window over the limit lists its entries', () => {
  const judge = new WindowJudge(4, 10, 2)
  for (const [tick, units] of [
    [1, 3],
    [2, 1],
    [11, 3],
    [12, 1],
  ])
    judge.add(1, tick!, units!)
  assert.equal([judge.windows, judge.over, judge.fullest], [4, 0, 4])
  judge.add(1, 13, 1)
  assert.equal(judge.complaints, ['column 1: 5 of 4 in 10 ticks, 3 at 11, 1 at 12, 1 at 13'])
})

test.run()
