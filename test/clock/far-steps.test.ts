// run: also-full, also-long
// Steps of more than an hour, and gaps longer than a wrap of the tick. At granules of a millisecond ticks
// wrap after 49.7 days, between the tested gaps of 30 and 60 days.

import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { sized } from '../size.js'
import { type ClockRule, KeyJudge } from './key-judge.js'
import { anyMoves, anyRule, anyStepMs, DAY_MS, HOUR_MS, KEYS, type Move, optionsOf } from './moves.js'

/** Of the runs of each property. */
const SHARE = sized({ quick: 0.25, full: 1 })

const START_MS = 1e12 + 123

/**
 * Plays the moves, of steps longer than a day only the first `mostWide`. The sum of the steps has no bound.
 */
function play(rule: ClockRule, moves: Move[], mostWide = Number.POSITIVE_INFINITY) {
  const granuleMs = rule.windowMs / rule.parts
  let now = START_MS
  let wide = 0
  const limiter = createLimiter({ ...optionsOf(rule), clock: { now: () => now } })
  const judges = Array.from({ length: KEYS }, () => new KeyJudge(rule))
  for (const { stepMs, granules, key, cost, checks } of moves) {
    if (Math.abs(stepMs) > DAY_MS && ++wide > mostWide) continue
    now = Math.round(now + stepMs + granules * granuleMs)
    while (judges.some((judge) => judge.isUnclear(now))) now -= Math.ceil(granuleMs)
    for (let i = 0; i < checks; i++) judges[key]!.judge(now, cost, limiter.check(`key ${key}`, cost))
  }
  return { judges, forgotten: judges.reduce((sum, judge) => sum + judge.forgotten, 0), wide }
}

test('a clock set back by more than an hour has forgotten all counts: the whole limit is free again, and no more', () => {
  const farMs = fc.oneof(
    anyStepMs,
    fc.integer({ min: HOUR_MS, max: 400 * DAY_MS }),
    fc.integer({ min: -400 * DAY_MS, max: -HOUR_MS }),
    fc.constantFrom(-365 * DAY_MS, 365 * DAY_MS),
  )
  // No step is long enough for the ticks to wrap.
  const rules = anyRule.filter(({ windowMs, parts }) => windowMs / parts > 15)
  let forgotten = 0
  fc.assert(
    fc.property(rules, anyMoves(farMs), (rule, moves) => {
      forgotten += play(rule, moves).forgotten
    }),
    { numRuns: Math.ceil(150 * SHARE) },
  )
  assert.ok(forgotten > 500 * SHARE, `${forgotten}`)
})

for (const edge of ['strict', 'smooth'] as const) {
  test(`${edge}: a key found full before the clock went far ahead and back is not full now`, () => {
    let now = START_MS
    const limiter = createLimiter({ limit: 3, window: '1m', edge, maxKeys: 50, clock: { now: () => now } })
    limiter.check('key', 2)
    assert.not(limiter.check('key', 2).allowed)
    now += 2 * HOUR_MS
    assert.ok(limiter.check('key').allowed)
    now = START_MS
    assert.ok(limiter.check('key', 3).allowed, 'all counts are forgotten')
    assert.not(limiter.check('key').allowed)
  })
}

const byMillisecond = fc
  .record({ limit: fc.integer({ min: 3, max: 30 }), windowMs: fc.constantFrom(60, 1_000, 60_000) })
  .map((rule) => ({ ...rule, parts: rule.windowMs }))

for (const days of [30, 60]) {
  test(`granules of a millisecond, gaps of ${days} days either way: never over the limit, no key locked out`, () => {
    const gapMs = fc
      .tuple(fc.constantFrom(days * DAY_MS, -days * DAY_MS), fc.integer({ min: -HOUR_MS, max: HOUR_MS }))
      .map(([gap, off]) => gap + off)
    let gaps = 0
    fc.assert(
      // No sum of five such gaps is within six hours of a multiple of 49.7 days, where ticks have the same
      // number.
      fc.property(byMillisecond, anyMoves(fc.oneof(anyStepMs, gapMs)), (rule, moves) => {
        gaps += Math.min(5, play(rule, moves, 5).wide)
      }),
      { numRuns: Math.ceil(100 * SHARE) },
    )
    assert.ok(gaps > 250 * SHARE, `${gaps}`)
  })

  test(`granules of a millisecond: after ${days} days every key has its whole limit, once`, () => {
    for (const windowMs of [60, 1_000, 60_000]) {
      const rule = { limit: 50, windowMs, parts: windowMs }
      let now = START_MS
      const limiter = createLimiter({ ...optionsOf(rule), clock: { now: () => now } })
      for (let gap = 0; gap < 5; gap++) {
        for (let key = 0; key < KEYS; key++) {
          let admitted = 0
          for (let i = 0; i < 120; i++) if (limiter.check(`key ${key}`).allowed) admitted++
          assert.is(admitted, 50, `key ${key} after ${gap} gaps`)
        }
        now += days * DAY_MS
      }
    }
  })
}

test.run()
