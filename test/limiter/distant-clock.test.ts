// Clocks that are years from the limiter's creation, and cells that are used again after a very long time.

import { attachLimiter, createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as layout from '#millrace/memory/layout.js'

const YEAR_MS = 365.25 * 86_400_000

for (const years of [0, 8, 9, 56]) {
  test(`${years} years after its creation, two threads' clocks may still differ by part of a granule`, () => {
    let now = 1_000
    const one = createLimiter({ limit: 50, window: '1m', maxKeys: 100, clock: { now: () => now } })
    const other = attachLimiter(one.share(), { clock: { now: () => now - 300 } })
    now = Math.floor((years * YEAR_MS) / 60_000) * 60_000
    let admitted = 0
    for (let i = 0; i < 59 * 20; i++) {
      now += 50
      for (const limiter of [one, other]) if (limiter.check('key').allowed) admitted++
    }
    assert.is(admitted, 50)
  })

  test(`${years} years after its creation, a clock that steps back stands still`, () => {
    const clock = manualClock()
    const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 100, clock })
    clock.set(years * YEAR_MS + 5_000)
    let admitted = 0
    for (const stepMs of [0, -1_000, 1_000]) {
      clock.advance(stepMs)
      for (let i = 0; i < 10; i++) if (limiter.check('key').allowed) admitted++
    }
    assert.is(admitted, 5)
  })

  test(`${years} years after its creation, a block ends on time`, () => {
    const clock = manualClock()
    const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 100, clock })
    clock.set(years * YEAR_MS)
    limiter.block('key', '1s')
    clock.advance(999)
    assert.equal([limiter.check('key').allowed, limiter.check('key').retryAfterMs], [false, 1])
    clock.advance(1)
    assert.ok(limiter.check('key').allowed)
  })
}

test('a block of four years ends; a longer one never does', () => {
  const clock = manualClock(YEAR_MS)
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 100, clock })
  limiter.block('long', 4 * YEAR_MS)
  limiter.block('longer', 5 * YEAR_MS)
  assert.is(limiter.check('long').retryAfterMs, 4 * YEAR_MS)
  assert.is(limiter.check('longer').retryAfterMs, Number.POSITIVE_INFINITY)
  clock.advance(4 * YEAR_MS)
  assert.equal([limiter.check('long').allowed, limiter.check('longer').allowed], [true, false])
})

for (const [edge, stepTicks, steps] of [
  ['smooth', 2 ** 19, 2],
  ['strict', 2 ** 19, 32],
  ['smooth', 2 ** 18, 4],
  ['strict', 2 ** 18, 64],
] as const) {
  test(`${edge}: the AS_OF note of a sum ${steps} times ${stepTicks} ticks ago, with equal bits, is not taken for a current one`, () => {
    const clock = manualClock(1_000)
    const limiter = createLimiter({ limit: 200, window: 10, granularity: 1, edge, maxKeys: 100, clock })
    limiter.check('key', 60)
    assert.not(limiter.check('key', 150).allowed)
    for (let i = 1; i < steps; i++) {
      clock.advance(stepTicks)
      assert.ok(limiter.check('key').allowed)
    }
    clock.advance(stepTicks)
    assert.ok(limiter.check('key', 150).allowed)
  })
}

for (const [edge, steps] of [
  ['smooth', 2],
  ['strict', 32],
] as const) {
  test(`${edge}: nor if the tick came to the equal bits by single ticks across each step`, () => {
    const clock = manualClock(2 ** 19 - 1)
    const limiter = createLimiter({ limit: 200, window: 10, granularity: 1, edge, maxKeys: 100, clock })
    limiter.check('key', 60)
    assert.not(limiter.check('key', 150).allowed)
    for (let step = 1; step <= steps; step++) {
      clock.advance(1)
      assert.ok(limiter.check('key').allowed)
      clock.advance(2 ** 19 - 1)
      assert.is(limiter.check('key', step < steps ? 1 : 150).allowed, true, `step ${step}`)
    }
  })
}

test('a way freed by a veto is not a new one, even at epoch 0: its old counts stay expired', () => {
  const clock = manualClock(1_000)
  const limiter = createLimiter({ limit: 5, window: 60, granularity: 1, maxKeys: 1, clock })
  const shape = layout.shapeFor(60, 60, 2)
  const words = new Int32Array(limiter.share().buffer)
  for (let i = 0; i < 5; i++) limiter.check('old')
  for (let way = 0; way < shape.ways; way++) {
    const adm = shape.waysAt + way * shape.wayWords + layout.ADM
    if (words[layout.NAMES_AT + way] !== 0)
      words[adm] = layout.FREE // as after a veto, with an epoch that has come round to 0
    else {
      words[layout.NAMES_AT + way] = 7
      words[adm] = layout.CLAIMED | layout.ONE_EPOCH
    }
  }
  clock.advance(256 * shape.ring + 3)
  assert.equal([limiter.check('new').allowed, limiter.check('new').remaining], [true, 3])
})

test('retryAfterMs ignores a way that a dead thread has claimed', () => {
  const clock = manualClock(1_000)
  const limiter = createLimiter({ limit: 5, window: '1h', maxKeys: 1, onFull: 'deny', clock })
  const shape = layout.shapeFor(3_600_000, 60, 2)
  const words = new Int32Array(limiter.share().buffer)
  const keys: string[] = []
  for (let i = 0; limiter.check(`key ${i}`).allowed; i++) keys.push(`key ${i}`)
  const adm = shape.waysAt + layout.ADM
  words[adm] = (words[adm]! & ~layout.STATE) | layout.CLAIMED
  for (const key of keys) limiter.check(key)
  assert.is(limiter.check('new').retryAfterMs, 3_720_000 - 1_000)
})

test('a refund that failed because of the clock can be repeated', () => {
  let now = 1_000
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 100, clock: { now: () => now } })
  const decision = limiter.check('key', 5)
  now = Number.NaN
  assert.throws(() => limiter.refund(decision), /finite/)
  now = 2_000
  assert.is(limiter.refund(decision), 5)
  assert.is(limiter.usage('key'), 0)
})

test.run()
