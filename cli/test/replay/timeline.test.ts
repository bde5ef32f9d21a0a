// run: also-long

import { labelOf, timeline } from 'millrace-cli/dist/replay/timeline.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'

const AT = Date.UTC(2026, 2, 9, 14)
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]
const traffic = (...atMs: number[]) => ({ clients: ['a'], atMs, client: atMs.map(() => 0) })
const all = (count: number) => new Uint8Array(count).fill(1)

test('each request counts in its span, as admitted or refused', () => {
  const found = timeline(traffic(AT + 25_000, AT + 1_000, AT + 2_000), new Uint8Array([1, 0, 1]), 5)
  assert.equal(found, {
    firstMs: AT,
    bucketMs: 10_000,
    admitted: [1, 0, 1],
    refused: [1, 0, 0],
  })
})

test('the spans are the shortest that fit, and start at round times', () => {
  const span = (lengthMs: number, most = 60) => timeline(traffic(AT, AT + lengthMs), all(2), most).bucketMs
  assert.is(span(0), 1_000)
  assert.is(span(59_000), 1_000)
  assert.is(span(MINUTE), 2_000)
  assert.is(span(10 * MINUTE), 15_000)
  assert.is(span(HOUR), 2 * MINUTE)
  assert.is(span(DAY), 30 * MINUTE)
  assert.is(span(84 * HOUR), 2 * HOUR)
  assert.is(span(365 * DAY), 7 * DAY)
  assert.is(timeline(traffic(AT + 17 * MINUTE, AT + HOUR), all(2), 8).firstMs, AT + 10 * MINUTE)
})

test('the number of spans is limited, and no request is lost', () => {
  const moments = fc.array(fc.integer({ min: 0, max: Date.UTC(9_999, 0) }), { maxLength: 30 })
  fc.assert(
    fc.property(moments, fc.integer({ min: 3, max: 120 }), fc.nat(), (moments, most, seed) => {
      const admitted = Uint8Array.from(moments, (_, i) => (seed >> (i % 31)) & 1)
      const found = timeline(traffic(...moments), admitted, most)
      assert.ok(found.admitted.length <= most)
      assert.is(found.refused.length, found.admitted.length)
      const sum = (counts: number[]) => counts.reduce((sum, count) => sum + count, 0)
      assert.is(sum(found.admitted), sum([...admitted]))
      assert.is(sum(found.refused), moments.length - sum([...admitted]))
    }),
  )
})

test('a label has the parts of date and time that are needed', () => {
  const labels = (bucketMs: number, count: number) => {
    const spans = { firstMs: AT, bucketMs, admitted: new Array(count).fill(0), refused: [] }
    return labelOf(spans, count - 1)
  }
  assert.is(labels(5_000, 3), '14:00:10')
  assert.is(labels(10 * MINUTE, 3), '14:20')
  assert.is(labels(HOUR, 10), '23:00')
  assert.is(labels(HOUR, 11), '03-10 00:00')
  assert.is(labels(DAY, 3), '2026-03-11')
})

test.run()
