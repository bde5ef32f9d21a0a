// run: also-long

import { type Duration, MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseDuration } from '#millrace/core/duration.js'
import { MAX_BUCKETS } from '#millrace/core/granularity.js'
import { checkLimit, checkRule } from '#millrace/core/rule.js'
import { MAX_LIMIT } from '#millrace/core/rule-algorithms.js'
import fc from '../fast-check.js'

test('a rule needs a limit and a window; the rest has defaults', () => {
  assert.equal(checkRule({ limit: 10, window: '1m' }), {
    name: 'default',
    limit: 10,
    windowMs: 60_000,
    buckets: 60,
    edge: 'strict',
    algorithm: 'sliding-window',
    align: 'none',
    units: 0,
    offsetMs: 0,
    unit: undefined,
    rate: undefined,
    rangeSum: undefined,
    flags: 0,
    period: 'none',
    timeZone: undefined,
  })
})

test('a rule may set every option', () => {
  const written = {
    name: 'api',
    limit: MAX_LIMIT,
    window: '30d' as const,
    granularity: '1h' as const,
    algorithm: 'sliding-window' as const,
    edge: 'smooth' as const,
  }
  assert.equal(checkRule(written), {
    name: 'api',
    limit: MAX_LIMIT,
    windowMs: 2_592_000_000,
    buckets: 720,
    edge: 'smooth',
    algorithm: 'sliding-window',
    align: 'none',
    units: 0,
    offsetMs: 0,
    unit: undefined,
    rate: undefined,
    rangeSum: undefined,
    flags: 0,
    period: 'none',
    timeZone: undefined,
  })
})

test('windows are 1 millisecond to 10,000 years, with 1 to 2^20 granules', () => {
  const buckets = (window: Duration, granularity: Duration) =>
    checkRule({ limit: 1, window, granularity }).buckets
  assert.is(checkRule({ limit: 1, window: 1 }).buckets, 60)
  assert.is(checkRule({ limit: 1, window: '3650000d' }).windowMs, 3_650_000 * 86_400_000)
  assert.is(buckets('1h', '1h'), 1)
  assert.is(buckets(MAX_BUCKETS, 1), MAX_BUCKETS)
  assert.is(buckets(250, 250 / 60), 60)
  assert.is(buckets('1s', 1_000 / 3), 3)
  assert.is(buckets('1s', '333.333333333ms'), 3, 'a granularity may be rounded to a decimal')
})

test('limits are 1 to 2^22 - 2', () => {
  for (const limit of [1, 2, MAX_LIMIT]) assert.not.throws(() => checkLimit(limit))
  for (const limit of [0, MAX_LIMIT + 1, 0.5]) assert.throws(() => checkLimit(limit))
  assert.is(MAX_LIMIT, 4_194_302)
})

/** The least distance from `granuleMs` to a number of whole milliseconds that divides the window. */
function distanceToNearest(granuleMs: number, windowMs: number): number {
  let least = Number.POSITIVE_INFINITY
  for (let divisor = 1; divisor <= windowMs; divisor++) {
    if (windowMs % divisor === 0) least = Math.min(least, Math.abs(divisor - granuleMs))
  }
  return least
}

test('if a granularity does not divide the window, the error names the nearest in whole milliseconds that does', () => {
  let refused = 0
  const granule = fc.double({ min: 0.01, max: 1, noNaN: true })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20_000 }), granule, fc.boolean(), (window, part, whole) => {
      const granularity = whole ? Math.max(1, Math.round(part * window)) : part * window
      try {
        const { buckets } = checkRule({ limit: 1, window, granularity })
        assert.ok(Math.abs(buckets * granularity - window) <= window * 1e-8)
      } catch (error) {
        assert.instance(error, MillraceError)
        refused++
        const nearest = /the nearest is (\S+),/.exec((error as MillraceError).message)?.[1] as Duration
        assert.not.throws(() => checkRule({ limit: 1, window, granularity: nearest }))
        const distance = Math.abs(parseDuration(nearest, 'nearest') - granularity)
        assert.is(distance, distanceToNearest(granularity, window), `${granularity} of ${window}: ${nearest}`)
      }
    }),
    { numRuns: 500 },
  )
  assert.ok(refused > 200, `${refused} refused`)
})

test('if a window has too many granules, the error names a granularity that is accepted', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4_000_000 }),
      fc.integer({ min: 1, max: 1_000 }),
      (seconds, tooFine) => {
        const window = seconds * 1_000
        const granularity = window / (MAX_BUCKETS + tooFine * tooFine)
        try {
          checkRule({ limit: 1, window, granularity })
          assert.unreachable(`accepted ${granularity} of ${window}`)
        } catch (error) {
          assert.instance(error, MillraceError, `${error}`)
          const least = /such as (\S+):/.exec((error as MillraceError).message)?.[1] as Duration
          const { buckets } = checkRule({ limit: 1, window, granularity: least })
          assert.ok(buckets >= 1 && buckets <= MAX_BUCKETS, `${least} of ${window}`)
        }
      },
    ),
    { numRuns: 300 },
  )
})

test.run()
