// run: typescript, also-long
// The judge of changing windows, compared with its rule in plain sums.

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { type Admission, ChangesJudge, type Had } from './changes-judge.js'

/** A unit that took effect at one moment, of the window with this index. */
function unitsAt(had: readonly Had[], record: number, ms: number, units: number, column = 0): Admission {
  const { windowMs, buckets } = had[record]!
  const tick = Math.floor((ms * buckets) / windowMs)
  return { column, units, fromMs: ms, first: tick, last: tick, record }
}

const had = (...windows: [windowMs: number, limit: number, endedMs?: number][]): Had[] =>
  windows.map(([windowMs, limit, endedMs = Number.POSITIVE_INFINITY]) => ({
    windowMs,
    buckets: 10,
    limit,
    endedMs,
  }))

function judged(windows: readonly Had[], admissions: Admission[], edge: 'strict' | 'smooth' = 'strict') {
  const judge = new ChangesJudge(windows, edge, 2, admissions)
  judge.judgeAll()
  return judge
}

test('units of an earlier window count in a longer one', () => {
  const windows = had([100, 5, 1_000], [1_000, 5])
  const earlier = unitsAt(windows, 0, 950, 3)
  const found = judged(windows, [earlier, unitsAt(windows, 1, 1_500, 3)])
  assert.equal([found.windows, found.carried, found.over], [2, 1, 1])
  assert.equal(found.complaints, ['column 0, window 1 of 1000 ms, tick 15: 6 of 5, 3 of them from before it'])
  assert.is(judged(windows, [earlier, unitsAt(windows, 1, 1_500, 2)]).over, 0)
  assert.is(judged(windows, [earlier, unitsAt(windows, 1, 2_100, 5)]).over, 0, 'they have left it')
  assert.is(judged(windows, [earlier, unitsAt(windows, 1, 1_500, 5, 1)]).over, 0, 'another column')
})

test('units may be forgotten that an earlier window no longer covered at its end', () => {
  const windows = had([100, 5, 1_000], [10, 5, 1_100], [1_000, 5])
  const late = unitsAt(windows, 2, 1_150, 5)
  assert.is(judged(windows, [unitsAt(windows, 0, 899, 1), late]).over, 0)
  assert.is(judged(windows, [unitsAt(windows, 0, 950, 1), late]).over, 0, 'the second did not')
  assert.is(judged(windows, [unitsAt(windows, 1, 1_095, 1), late]).over, 1)
})

test('units of a later window do not count in an earlier one', () => {
  const windows = had([100, 2, 1_000], [100, 5])
  assert.is(judged(windows, [unitsAt(windows, 0, 999, 2), unitsAt(windows, 1, 999, 3)]).over, 0)
})

test('the smooth edge keeps and counts a granule less', () => {
  const windows = had([100, 5, 1_000], [1_000, 5])
  const both = (ms: number) => [unitsAt(windows, 0, ms, 3), unitsAt(windows, 1, 1_050, 3)]
  assert.equal([judged(windows, both(905)).over, judged(windows, both(905), 'smooth').over], [1, 0])
  assert.is(judged(windows, both(915), 'smooth').over, 1)
})

test('an admission counts only in windows that contain all its possible ticks', () => {
  const windows = had([100, 5])
  const at = (first: number, last: number): Admission => ({
    ...unitsAt(windows, 0, 10 * first, 3),
    first,
    last,
  })
  assert.is(judged(windows, [at(0, 0), at(10, 10)]).over, 1)
  assert.is(judged(windows, [at(0, 3), at(10, 10)]).over, 1)
  assert.is(judged(windows, [at(0, 3), at(9, 11)]).over, 0)
})

test('the judge finds what plain sums find', () => {
  const window = fc.record({
    windowMs: fc.constantFrom(20, 50, 100, 400),
    limit: fc.integer({ min: 1, max: 12 }),
    lastsMs: fc.integer({ min: 1, max: 300 }),
  })
  const unit = fc.record({ part: fc.integer({ min: 0, max: 99 }), units: fc.integer({ min: 0, max: 4 }) })
  const column = fc.array(fc.tuple(unit, fc.nat(3)), { maxLength: 40 })
  fc.assert(
    fc.property(fc.array(window, { minLength: 4, maxLength: 4 }), column, (drawn, units) => {
      const windows: Had[] = []
      let nowMs = 0
      for (const { windowMs, limit, lastsMs } of drawn) {
        nowMs += lastsMs
        windows.push({ windowMs, buckets: 5, limit, endedMs: nowMs })
      }
      const admissions = units.map(([{ part, units }, record]) => {
        const fromMs = (windows[record - 1]?.endedMs ?? 0) + (part / 100) * drawn[record]!.lastsMs
        return unitsAt(windows, record, fromMs, units)
      })
      const found = judged(windows, admissions)
      const over = new Set<string>()
      for (const { record, last, units } of admissions) {
        if (units === 0) continue
        const tickOf = ({ fromMs }: Admission) => Math.floor((fromMs * 5) / windows[record]!.windowMs)
        const counted = admissions.filter((one) => {
          if (one.record > record || tickOf(one) <= last - 6) return false
          if (one.record === record) return one.last <= last
          const since = windows.slice(one.record, record)
          return since.every(({ endedMs, windowMs }) => one.fromMs > endedMs - windowMs)
        })
        const used = counted.reduce((sum, { units }) => sum + units, 0)
        if (used > windows[record]!.limit) over.add(`${record} ${last}`)
        else
          assert.ok(
            judged(windows, admissions).usedAtLeast(
              0,
              record,
              ((last + 0.5) * windows[record]!.windowMs) / 5,
            ) === used,
          )
      }
      assert.is(found.over, over.size)
    }),
  )
})

test.run()
