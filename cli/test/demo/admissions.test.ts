// run: also-long

import { Admissions } from 'millrace-cli/dist/demo/admissions.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

const logOf = (windowMs: number, moments: readonly number[], client = 7) => {
  const admissions = new Admissions(windowMs)
  admissions.add({ clients: Int32Array.from(moments, () => client), atMs: Float64Array.from(moments) })
  return admissions
}

test('a window contains the admissions since less than its length', () => {
  assert.is(logOf(1_000, [0, 500, 999.9]).peakOf(7), 3)
  assert.is(logOf(1_000, [0, 500, 1_000]).peakOf(7), 2)
  assert.is(logOf(1_000, []).peakOf(7), 0)
})

test('the peak is the highest count of all windows, for any order of the log', () => {
  const moments = fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 60 })
  fc.assert(
    fc.property(moments, (moments) => {
      const inWindow = (end: number) => moments.filter((at) => at > end - 1_000 && at <= end).length
      const log = logOf(1_000, moments)
      assert.is(log.peakOf(7), Math.max(0, ...moments.map(inWindow)))
      const ends = [0, 250, 1_000, 1_001, 4_000, 9_000]
      assert.equal(log.usedAt(7, ends), ends.map(inWindow))
    }),
  )
})

test('each client has its own log, which joins those of all threads', () => {
  const admissions = new Admissions(1_000)
  admissions.add({ clients: Int32Array.of(1, 2, 1), atMs: Float64Array.of(30, 10, 20) })
  admissions.add({ clients: Int32Array.of(1), atMs: Float64Array.of(25) })
  assert.equal(
    [1, 2, 3].map((client) => admissions.peakOf(client)),
    [3, 1, 0],
  )
})

test.run()
