import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SlidingWindow } from '#millrace/algorithms/window/sliding-window.js'
import { InlineEngine } from '#millrace/engines/inline/inline.js'
import { createArena } from '#millrace/memory/arena.js'
import { CLAIMED, FREE, HI, LIVE, NAMED, NAMES_AT } from '#millrace/memory/layout.js'

const rule = {
  name: 'default',
  limit: 2,
  windowMs: 60_000,
  buckets: 60,
  edge: 'strict',
  algorithm: 'sliding-window',
  align: 'none',
  period: 'none',
  units: 0,
  offsetMs: 0,
  flags: 0,
} as const

test('keys that share half of their fingerprints are different keys, in a full table too', () => {
  for (const onFull of ['evict', 'deny'] as const) {
    const engine = new InlineEngine(createArena(rule, 1, onFull, 0), 'default', { now: () => 1_000_000 })
    const keys = Array.from({ length: 16 }, (_, i) => [
      [5, i << 7],
      [5 + 16 * (i + 1), 0],
    ]).flat() as [lo: number, hi: number][]
    for (const allowed of [true, true, false]) {
      for (const [lo, hi] of keys) assert.is(engine.checkNow(lo, hi, 1).allowed, allowed, `${lo} ${hi}`)
    }
    assert.is(engine.statistics().keys, 32)
    assert.not(engine.checkNow(5, 99 << 7, 1).allowed, 'every new key inherits counts')
  }
})

test('a new key finds an unused way even after another key had to displace one', () => {
  const engine = new InlineEngine(createArena(rule, 60, 'evict', 0), 'default', { now: () => 1_000_000 })
  // These keys fill the first two of five sets.
  for (let i = 1; i <= 32; i++) assert.ok(engine.checkNow(i, 0, 1).allowed)
  assert.ok(engine.checkNow(33, 0, 1).allowed)
  assert.is(engine.statistics().evictedLive, 1)
  assert.ok(engine.checkNow(0x70000000, 0, 2).allowed)
  assert.is(engine.statistics().keys, 33)
})

test('a way belongs to a key if both halves of its name match and it is LIVE', () => {
  const { words, shape } = createArena(rule, 1, 'deny', 0)
  const window = new SlidingWindow(words, shape, 'strict', 0)
  for (const way of [0, 7, 31]) {
    words[NAMES_AT + way] = 123
    words[window.base(way) + HI] = -456
    assert.ok(window.isOf(LIVE | 5, way, 123, -456))
    assert.equal([window.isOf(LIVE, way, 124, -456), window.isOf(LIVE, way, 123, 456)], [false, false])
    for (const state of [FREE, CLAIMED, NAMED]) assert.not(window.isOf(state, way, 123, -456))
  }
})

test.run()
