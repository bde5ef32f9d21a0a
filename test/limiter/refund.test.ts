// run: also-long

import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { limiterWith, START_MS } from './support.js'

test('refunding a decision gives back its charge, once', () => {
  const { limiter } = limiterWith()
  const decision = limiter.check('key', 3)
  limiter.check('key', 2)
  assert.not(limiter.check('key').allowed)
  assert.is(limiter.refund(decision), 3)
  assert.is(limiter.usage('key'), 2)
  assert.is(limiter.refund(decision), 0)
  assert.is(limiter.usage('key'), 2)
  assert.ok(decision.allowed, 'it was allowed')
  assert.ok(limiter.check('key', 3).allowed, 'and its room is free at once')
  assert.not(limiter.check('key').allowed)
})

test('a decision can be refunded while it counts, and not afterwards', () => {
  const end = 61_000 - (START_MS % 1_000)
  for (const [afterMs, units] of [
    [0, 2],
    [59_999, 2],
    [end - 1, 2],
    [end, 0],
    [end + 1, 0],
    [100 * 61_000, 0],
    [256 * 61_000, 0],
  ] as const) {
    for (const isBusy of [true, false]) {
      const { clock, limiter } = limiterWith()
      const decision = limiter.check('key', 2)
      clock.advance(afterMs)
      if (isBusy) limiter.check('key', 3)
      assert.is(limiter.refund(decision), units, `after ${afterMs} ms, ${isBusy ? 'busy' : 'idle'} since`)
      assert.is(limiter.usage('key'), isBusy ? 3 : 0)
    }
  }
})

test('no algorithm gives back a decision whose units a refund by key has taken', () => {
  for (const algorithm of ['sliding-window', 'fixed-window', 'token-bucket', 'leaky-bucket'] as const) {
    const limiter = createLimiter({ algorithm, limit: 5, window: '1m', clock: manualClock(START_MS) })
    const decision = limiter.check('key', 5)
    assert.is(limiter.refund('key', 5), 5)
    assert.ok(limiter.check('key', 5).allowed)
    assert.is(limiter.refund(decision), 0, algorithm)
    assert.not(limiter.check('key').allowed, algorithm)
  }
})

test('refused, peeked and free decisions give back nothing', () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  for (const decision of [
    limiter.check('key'),
    limiter.check('key', 6),
    limiter.check('key', 0),
    limiter.peek('other', 2),
    limiter.peek('key'),
  ]) {
    assert.is(limiter.refund(decision), 0)
  }
  assert.is(limiter.usage('key'), 5)
})

test('a decision whose charge was cleared or refunded by key gives back nothing', () => {
  const { limiter } = limiterWith()
  const cleared = limiter.check('a', 2)
  limiter.clear('a')
  limiter.check('a', 3)
  assert.is(limiter.refund(cleared), 0)
  assert.is(limiter.usage('a'), 3)
  const refunded = limiter.check('b', 2)
  assert.is(limiter.refund('b', 2), 2)
  assert.is(limiter.refund(refunded), 0)
  assert.is(limiter.usage('b'), 0)
})

test('a decision after any number of refunds by key in its granule gives back its charge', () => {
  for (let times = 0; times < 20; times++) {
    const { limiter } = limiterWith()
    for (let i = 0; i < times; i++) {
      limiter.check('key', 2)
      assert.is(limiter.refund('key', 1), 1)
      limiter.clear('key')
    }
    const first = limiter.check('key', 3)
    const second = limiter.check('key', 2)
    assert.not(limiter.check('key').allowed)
    assert.is(limiter.refund(first), 3, `after ${2 * times} refunds by key`)
    assert.is(limiter.usage('key'), 2)
    assert.ok(limiter.check('key', 3).allowed)
    assert.is(limiter.refund(second), 2)
    assert.is(limiter.refund(second), 0)
    assert.is(limiter.usage('key'), 3)
  }
})

test('a decision gives back no charges of others, after any number of refunds by key before it and after it', () => {
  for (let before = 0; before < 6; before++) {
    for (let after = 1; after < 20; after++) {
      const { limiter } = limiterWith()
      for (let i = 0; i < before; i++) {
        limiter.check('key')
        assert.is(limiter.refund('key', 1), 1)
      }
      const decision = limiter.check('key')
      for (let i = 0; i < after; i++) {
        assert.is(limiter.refund('key', 1), 1)
        assert.ok(limiter.check('key').allowed)
      }
      assert.is(limiter.refund(decision), 0, `${before} refunds by key before, ${after} after`)
      assert.is(limiter.usage('key'), 1)
    }
  }
})

test('a decision in a granule whose lap number comes round gives back its charge', () => {
  for (const slot of [0, 5, 10]) {
    const { clock, limiter } = limiterWith({ window: 10_000 })
    clock.advance(1_000 * slot)
    limiter.check('key')
    for (let lap = 0; lap < 256; lap++) {
      clock.advance(3_000)
      limiter.check('key')
      clock.advance(8_000)
    }
    const decision = limiter.check('key', 2)
    assert.is(limiter.usage('key', '1s'), 2)
    assert.is(limiter.refund(decision), 2, `${slot} granules on`)
  }
})

test('with nodes, too, a decision can be refunded while it counts, and not afterwards', () => {
  const end = 301_000 - (START_MS % 1_000)
  for (const rangeSum of ['blocks', 'fenwick'] as const) {
    for (const [afterMs, units] of [
      [end - 1, 2],
      [end, 0],
      [end + 1_000, 0],
      [383_000, 0], // its bucket has not been charged again: the ring is longer than the window
    ] as const) {
      const { clock, limiter } = limiterWith({ window: 300_000, rangeSum })
      const decision = limiter.check('key', 2)
      clock.advance(afterMs)
      assert.is(limiter.refund(decision), units, `${rangeSum}, after ${afterMs} ms`)
    }
  }
})

test('refunds by key that found nothing do not prevent the refund of a decision', () => {
  const { limiter } = limiterWith()
  limiter.refund(limiter.check('key'))
  for (let i = 0; i < 3; i++) assert.is(limiter.refund('key', 1), 0)
  assert.is(limiter.refund(limiter.check('key')), 1)
})

test('refund by key takes the oldest units first, and returns how many', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 2)
  clock.advance(10_000)
  limiter.check('key', 1)
  clock.advance(10_000)
  limiter.check('key', 2)
  assert.is(limiter.refund('key', 1), 1)
  assert.equal([limiter.usage('key'), limiter.usage('key', '15s'), limiter.usage('key', '5s')], [4, 3, 2])
  assert.is(limiter.refund('key', 2), 2)
  assert.equal([limiter.usage('key'), limiter.usage('key', '15s'), limiter.usage('key', '5s')], [2, 2, 2])
  assert.is(limiter.refund('key', 5), 2, 'no more than there was')
  assert.is(limiter.refund('key', 5), 0)
  assert.is(limiter.usage('key'), 0)
})

test('refund by key handles a huge cost, 0, an unknown key, and expired units', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 5)
  assert.is(limiter.refund('key', 0), 0)
  assert.is(limiter.refund('stranger', 3), 0)
  assert.is(limiter.stats().keys, 1, 'and gives it no place')
  assert.is(limiter.refund('key', 1e300), 5)
  limiter.check('key', 5)
  clock.advance(61_000)
  assert.is(limiter.refund('key', 5), 0)
})

test('units refunded by key are free at once, also after a refusal', () => {
  const { limiter } = limiterWith()
  limiter.check('key', 5)
  assert.not(limiter.check('key').allowed)
  for (let i = 0; i < 10; i++) {
    assert.is(limiter.refund('key', 1), 1)
    assert.ok(limiter.check('key').allowed)
    assert.not(limiter.check('key').allowed)
  }
})

test('refund by key of a blocked key takes its units, and leaves it blocked', () => {
  const { limiter } = limiterWith()
  limiter.check('key', 4)
  limiter.block('key', '1h')
  assert.is(limiter.refund('key', 3), 3)
  assert.not(limiter.check('key').allowed)
  assert.ok(limiter.unblock('key'))
  assert.is(limiter.peek('key').remaining, 4)
})

const step = fc.oneof(
  fc.record({ act: fc.constant('check' as const), cost: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ act: fc.constant('refund' as const), cost: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ act: fc.constant('give back' as const), which: fc.nat(9) }),
  fc.record({ act: fc.constant('advance' as const), ticks: fc.nat(4) }),
)

test('any mix of charges and refunds matches a list of entries', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { clock, limiter } = limiterWith({ limit: 12, window: 6_000, granularity: 1_000 })
      let log: { tick: number; units: number }[] = []
      interface Made {
        decision: ReturnType<typeof limiter.check>
        tick: number
        /** The refunds by key so far, in the decision's granule and in all. */
        refunds: number
        all: number
      }
      const decisions: Made[] = []
      const refundsIn = new Map<number, number>()
      let all = 0
      const tickNow = () => Math.floor(clock.now() / 1_000)
      const used = () => log.reduce((sum, { units }) => sum + units, 0)
      for (const taken of steps) {
        log = log.filter(({ tick, units }) => tick >= tickNow() - 6 && units > 0)
        if (taken.act === 'advance') clock.advance(1_000 * taken.ticks)
        else if (taken.act === 'check') {
          const decision = limiter.check('key', taken.cost)
          assert.is(decision.allowed, used() + taken.cost <= 12)
          if (!decision.allowed) continue
          const tick = tickNow()
          const entry = log.find((one) => one.tick === tick)
          if (entry) entry.units += taken.cost
          else log.push({ tick, units: taken.cost })
          decisions.push({ decision, tick, refunds: refundsIn.get(tick) ?? 0, all })
        } else if (taken.act === 'refund') {
          let left = taken.cost
          all++
          for (const entry of log) {
            const part = Math.min(left, entry.units)
            if (part > 0) refundsIn.set(entry.tick, (refundsIn.get(entry.tick) ?? 0) + 1)
            entry.units -= part
            left -= part
          }
          assert.is(limiter.refund('key', taken.cost), taken.cost - left)
        } else {
          const [given] = decisions.splice(taken.which, 1)
          if (!given) continue
          const units = limiter.refund(given.decision)
          const entry = log.find(({ tick }) => tick === given.tick)
          // A refund by key in the same granule since the charge may have taken it: then nothing is given
          // back. If there were refunds by key before the charge, a later one in any other granule may hide
          // it.
          const isThere = entry !== undefined && (refundsIn.get(given.tick) ?? 0) === given.refunds
          if (!isThere) assert.is(units, 0)
          else if (given.refunds === 0 || given.all === all)
            assert.ok(units > 0, 'the charge still counts, but nothing was given back')
          if (entry) entry.units -= units
        }
      }
      log = log.filter(({ tick }) => tick >= tickNow() - 6)
      assert.is(limiter.peek('key', 0).remaining, 12 - used())
    }),
    { numRuns: 500 },
  )
})

test.run()
