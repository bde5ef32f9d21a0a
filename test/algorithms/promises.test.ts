// run: also-full, also-long
// Random traffic on a manual clock, judged by an exact sliding log.

import { createLimiter, type Edge, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { ExactLog } from '../judge/exact-log.js'
import { sized } from '../size.js'
import { random } from './random.js'

/** The share of the runs of each property. */
const SHARE = sized({ quick: 0.2, full: 1 })
const DAY = 86_400_000
const WINDOWS = [250, 1_000, 60_000, 3_600_000, DAY, 30 * DAY, 400 * DAY]
const PARTS = [1, 2, 7, 10, 60]

interface Traffic {
  windowMs: number
  parts: number
  limit: number
  seed: number
}

const traffic = fc.record({
  windowMs: fc.constantFrom(...WINDOWS),
  parts: fc.constantFrom(...PARTS),
  limit: fc.integer({ min: 1, max: 40 }),
  seed: fc.integer(),
})

/** A random step in whole milliseconds: often 0, around a granule or a window, sometimes many windows. */
function step(next: () => number, granuleMs: number, windowMs: number): number {
  const scales = [0, granuleMs / 3, granuleMs, windowMs / 2, windowMs, 70 * windowMs]
  const weights = [0.55, 0.75, 0.9, 0.95, 0.99, 1]
  const pick = next()
  return Math.round(2 * next() * scales[weights.findIndex((weight) => pick < weight)]!)
}

/** A limiter, its clock at a random time, and a random number generator. */
function setUp(edge: Edge, { windowMs, parts, limit, seed }: Traffic) {
  const next = random(seed)
  const granuleMs = windowMs / parts
  const clock = manualClock(Math.round(next() * 1e9))
  const limiter = createLimiter({ limit, window: windowMs, granularity: granuleMs, edge, maxKeys: 10, clock })
  return { next, granuleMs, clock, limiter }
}

function play(edge: Edge, traffic: Traffic, judge: (decision: Judged) => void): void {
  const { next, granuleMs, clock, limiter } = setUp(edge, traffic)
  const { windowMs, limit } = traffic
  const log = new ExactLog()
  for (let i = 0; i < 400; i++) {
    clock.advance(step(next, granuleMs, windowMs))
    const cost = 1 + Math.floor(next() * Math.min(4, limit))
    const decision = limiter.check('key', cost)
    const at = clock.now()
    judge({ allowed: decision.allowed, cost, at, log, granuleMs })
    if (decision.allowed) log.add(at, cost)
  }
}

interface Judged {
  allowed: boolean
  cost: number
  at: number
  log: ExactLog
  granuleMs: number
}

test('strict: never over the limit in any window, never refused more than one granule early', () => {
  let refusals = 0
  fc.assert(
    fc.property(traffic, (traffic) => {
      play('strict', traffic, ({ allowed, cost, at, log, granuleMs }) => {
        const { windowMs, limit } = traffic
        if (allowed) assert.ok(log.used(at, windowMs) + cost <= limit, 'over the limit')
        else assert.ok(log.used(at, windowMs + granuleMs) + cost > limit, 'refused too early')
        if (!allowed) refusals++
      })
    }),
    { numRuns: 300 * SHARE },
  )
  assert.ok(refusals > 10_000 * SHARE, 'the traffic met its limit')
})

test('smooth: never over in a window less one granule, and no stricter than strict', () => {
  fc.assert(
    fc.property(traffic, (traffic) => {
      play('smooth', traffic, ({ allowed, cost, at, log, granuleMs }) => {
        const { windowMs, limit } = traffic
        if (allowed) assert.ok(log.used(at, windowMs - granuleMs) + cost <= limit, 'over the limit')
        else assert.ok(log.used(at, windowMs + granuleMs) + cost > limit, 'refused too early')
      })
    }),
    { numRuns: 300 * SHARE },
  )
})

test('smooth is closer to an exact log than strict on the same traffic', () => {
  const wrong = { strict: 0, smooth: 0 }
  for (const edge of ['strict', 'smooth'] as const) {
    for (let seed = 0; seed < 60; seed++) {
      play(edge, { windowMs: 60_000, parts: 10, limit: 40, seed }, ({ allowed, cost, at, log }) => {
        if (allowed !== log.used(at, 60_000) + cost <= 40) wrong[edge]++
      })
    }
  }
  assert.ok(wrong.smooth < 0.75 * wrong.strict, JSON.stringify(wrong))
})

for (const edge of ['strict', 'smooth'] as const) {
  test(`${edge}: retryAfterMs is the first millisecond at which the same cost is admitted`, () => {
    let waits = 0
    fc.assert(
      fc.property(traffic, (traffic) => {
        const { next, granuleMs, clock, limiter } = setUp(edge, traffic)
        const { windowMs, limit } = traffic
        for (let i = 0; i < 60; i++) {
          clock.advance(step(next, granuleMs, windowMs))
          const cost = 1 + Math.floor(next() * limit)
          const { allowed, retryAfterMs } = limiter.check('key', cost)
          if (allowed) continue
          waits++
          assert.ok(Number.isInteger(retryAfterMs) && retryAfterMs >= 1)
          clock.advance(retryAfterMs - 1)
          assert.not(limiter.check('key', cost).allowed, 'admitted before retryAfterMs')
          assert.is(limiter.peek('key', cost).retryAfterMs, 1)
          clock.advance(1)
          assert.ok(limiter.check('key', cost).allowed, 'refused at retryAfterMs')
        }
      }),
      { numRuns: 200 * SHARE },
    )
    assert.ok(waits > 2_000 * SHARE)
  })

  test(`${edge}: resetMs is the first millisecond at which the whole limit is available`, () => {
    fc.assert(
      fc.property(traffic, (traffic) => {
        const { next, granuleMs, clock, limiter } = setUp(edge, traffic)
        const { windowMs, limit } = traffic
        for (let i = 0; i < 40; i++) {
          clock.advance(step(next, granuleMs, windowMs))
          const { resetMs } = limiter.check('key', 1 + Math.floor(next() * limit))
          if (next() < 0.7) continue
          clock.advance(resetMs - 1)
          assert.not(limiter.peek('key', limit).allowed, 'the whole limit is available before resetMs')
          clock.advance(1)
          assert.is(limiter.peek('key').remaining, limit)
          assert.ok(limiter.peek('key', limit).allowed, 'the whole limit is not available at resetMs')
        }
      }),
      { numRuns: 200 * SHARE },
    )
  })
}

test.run()
