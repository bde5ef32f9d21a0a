// run: also-long

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Clock } from '#millrace/core/clock.js'
import { Reading } from '#millrace/core/reading.js'
import { Ticks } from '#millrace/core/ticks.js'
import { shapeFor } from '#millrace/memory/layout.js'
import fc from '../fast-check.js'

const anyTicks = fc
  .record({
    windowMs: fc.constantFrom(1, 7, 60, 250, 1_000, 1_001, 60_000, 333.25, 86_400_000),
    buckets: fc.constantFrom(1, 3, 7, 10, 60, 61, 997),
  })
  .map(({ windowMs, buckets }) => new Ticks(windowMs, buckets, shapeFor(windowMs, buckets, 2).modulus))
const anyMoment = fc.oneof(
  fc.integer({ min: 0, max: 10_000 }),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.double({ min: 1e9, max: 2e12, noNaN: true }),
)

test('the tick of a moment is the number of whole granules that have passed', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 10, 250, 1_000),
      fc.integer({ min: -1e12, max: 1e12 }),
      (granuleMs, nowMs) => {
        const ticks = new Ticks(granuleMs * 60, 60, 2 ** 31)
        assert.is(Math.floor(ticks.position(nowMs)), Math.floor(nowMs / granuleMs))
      },
    ),
  )
  const thirds = new Ticks(1_000, 3, 2 ** 31)
  assert.equal(
    [0, 333, 334, 666, 667, 999, 1_000].map((ms) => Math.floor(thirds.position(ms))),
    [0, 0, 1, 1, 2, 2, 3],
  )
})

test('position never falls as time rises', () => {
  fc.assert(
    fc.property(anyTicks, anyMoment, fc.double({ min: 0, max: 10, noNaN: true }), (ticks, nowMs, stepMs) => {
      assert.ok(ticks.position(nowMs + stepMs) >= ticks.position(nowMs))
    }),
  )
})

test('untilPosition is the first whole millisecond at that position, as a search by milliseconds finds it', () => {
  let ahead = 0
  fc.assert(
    fc.property(anyTicks, anyMoment, fc.integer({ min: -40, max: 40 }), (ticks, moment, sixteenths) => {
      const nowMs = Math.floor(moment) // decisions start at a whole millisecond
      fc.pre(ticks.granuleMs < 5_000)
      const position = Math.floor(ticks.position(nowMs)) + sixteenths / 16
      const found = ticks.untilPosition(nowMs, position)
      let ms = -Math.ceil(4 * ticks.granuleMs) - 2
      while (ticks.position(nowMs + ms) < position) ms++
      assert.is(found, ms)
      if (ms > 0) ahead++
    }),
    { numRuns: 500 },
  )
  assert.ok(ahead > 50)
})

test('untilPosition is exact even if multiplication of the position is not', () => {
  for (const [windowMs, buckets, nowMs, position] of [
    [1_001, 997, 889_733_094_466, 886_177_717_468.125],
    [10_000 + 1 / 3, 1, 598_599, 63],
    [10_000 + 1 / 3, 1, 1_274_524_591_179, 127_448_214],
  ] as const) {
    const ticks = new Ticks(windowMs, buckets, 2 ** 31)
    const found = ticks.untilPosition(nowMs, position)
    assert.ok(found > 0 && ticks.position(nowMs + found) >= position, 'reached')
    assert.ok(ticks.position(nowMs + found - 1) < position, 'not reached a millisecond before')
  }
})

test('a wrapped tick is the tick modulo the modulus, also for ticks before 0', () => {
  fc.assert(
    fc.property(anyTicks, fc.integer({ min: -(2 ** 52), max: 2 ** 52 }), (ticks, tick) => {
      const { modulus } = ticks
      const wrapped = ticks.wrap(tick)
      assert.ok(wrapped >= 0 && wrapped < modulus)
      assert.is(
        BigInt.asUintN(64, BigInt(wrapped)),
        ((BigInt(tick) % BigInt(modulus)) + BigInt(modulus)) % BigInt(modulus),
      )
    }),
  )
})

test('the tick of a reading depends only on its moment, not on earlier readings', () => {
  const anyMove = fc.oneof(
    fc.double({ min: -2, max: 2, noNaN: true }),
    fc.constantFrom(0, 1, -1, 1e-9, -1e-9, 100, -100, 1e6),
  )
  fc.assert(
    fc.property(anyTicks, anyMoment, fc.array(anyMove, { maxLength: 30 }), (ticks, startMs, moves) => {
      fc.pre(ticks.position(startMs) < 2 ** 48) // far beyond that a reading is refused, as tested below
      let now = startMs
      const clock: Clock = { now: () => now }
      const reading = new Reading(clock, ticks)
      for (const granules of [0, ...moves]) {
        now += granules * ticks.granuleMs
        reading.take()
        const tick = Math.floor(ticks.position(now))
        assert.is(reading.nowMs, now)
        assert.is(reading.tick, ticks.wrap(tick) | 0)
        assert.is(reading.absoluteTick, tick)
        assert.is(reading.sixteenth, Math.floor(ticks.position(now) * 16) - 16 * tick)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('a clock so far ahead that ticks have no distinct numbers is refused', () => {
  const ticks = new Ticks(1, 1_000, shapeFor(1, 1_000, 2).modulus)
  const last = Math.floor(Number.MAX_SAFE_INTEGER / 16 / 1_000)
  let now = last
  const reading = new Reading({ now: () => now }, ticks)
  reading.take()
  assert.is(reading.absoluteTick, last * 1_000)
  for (now of [last + 1, -last - 1, Number.MAX_VALUE]) {
    assert.throws(() => reading.take(), /small enough to distinguish times 0.001 ms apart/)
  }
})

test('readings of one tick compute it once, also with an offset far larger than the readings', () => {
  for (const offsetMs of [0, 1_780_000_000_000, -1_780_000_000_000]) {
    let computed = 0
    class CountedTicks extends Ticks {
      override wrap(tick: number): number {
        computed++
        return super.wrap(tick)
      }
    }
    const ticks = new CountedTicks(86_400_000, 1, 2 ** 30, 0, offsetMs)
    let now = 17_000_000
    const reading = new Reading({ now: () => now }, ticks)
    for (let i = 0; i < 100; i++) {
      now += 0.25
      reading.take()
    }
    assert.is(computed, 1, `offset ${offsetMs}`)
  }
})

test('a reading at the edge of a granule has the tick of the right granule', () => {
  for (const [windowMs, buckets] of [
    [1_000, 3],
    [1_000, 7],
    [60_000, 61],
    [1, 60],
    [86_400_000, 997],
  ] as const) {
    const ticks = new Ticks(windowMs, buckets, 2 ** 31)
    let now = 0
    const reading = new Reading({ now: () => now }, ticks)
    for (const base of [1, 1_000, 1_700_000_000]) {
      for (let tick = base; tick < base + 50; tick++) {
        const edge = tick * ticks.granuleMs
        const ulp = edge * 2 ** -52
        for (const off of [-3, -2, -1, 0, 1, 2, 3]) {
          now = edge + off * ulp
          reading.take()
          assert.is(reading.absoluteTick, Math.floor(ticks.position(now)))
          assert.is(reading.tick, ticks.wrap(reading.absoluteTick) | 0, `${windowMs}/${buckets} at ${now}`)
        }
      }
    }
  }
})

test.run()
