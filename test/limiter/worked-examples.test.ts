// run: once
// Worked examples of sliding windows, as textbooks and interviews pose them, each with its answer. Times are
// in the unit that the example names.
import { createLimiter, type LimiterOptions, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** A limiter on a clock that `at` sets. */
function exampleOf(options: LimiterOptions) {
  const clock = manualClock(0)
  const limiter = createLimiter({ maxKeys: 20, ...options, clock })
  const at = (ms: number) => clock.set(ms)
  return { limiter, at }
}

const ENTRIES = [41, 43, 44, 47, 49]

test('5 in 10 seconds by a log: a request at 50 is refused, at 51 the entry of 41 has left', () => {
  const { limiter, at } = exampleOf({ limit: 5, window: '10s', algorithm: 'sliding-log' })
  for (const second of ENTRIES) {
    at(second * SECOND)
    assert.ok(limiter.check('client').allowed, `at ${second}`)
  }
  at(50 * SECOND)
  assert.is(limiter.check('client').retryAfterMs, SECOND)
  at(51 * SECOND - 1)
  assert.not(limiter.check('client').allowed)
  at(51 * SECOND)
  assert.ok(limiter.check('client').allowed)
})

for (const granularity of ['10ms', '100ms', '1s'] as const) {
  const granuleMs = { '10ms': 10, '100ms': 100, '1s': 1_000 }[granularity]

  test(`5 in 10 seconds, granularity ${granularity}: a request at 50 is refused until the entry of 41 has left`, () => {
    const { limiter, at } = exampleOf({ limit: 5, window: '10s', granularity })
    for (const second of ENTRIES) {
      at(second * SECOND)
      assert.ok(limiter.check('client').allowed, `at ${second}`)
    }
    at(50 * SECOND)
    const refused = limiter.check('client')
    assert.not(refused.allowed)
    const admittedMs = 50 * SECOND + refused.retryAfterMs
    assert.ok(admittedMs >= 51 * SECOND && admittedMs <= 51 * SECOND + granuleMs, `at ${admittedMs} ms`)
    at(admittedMs - 1)
    assert.not(limiter.check('client').allowed)
    at(admittedMs)
    assert.ok(limiter.check('client').allowed)
    assert.is(limiter.usage('client'), 5)
  })

  test(`5 in 10 seconds, granularity ${granularity}: with countRefused it is still refused when 41 has left`, () => {
    const { limiter, at } = exampleOf({ limit: 5, window: '10s', granularity, countRefused: true })
    for (const second of ENTRIES) {
      at(second * SECOND)
      assert.ok(limiter.check('client').allowed, `at ${second}`)
    }
    at(50 * SECOND)
    const refused = limiter.check('client')
    assert.not(refused.allowed)
    at(51 * SECOND + granuleMs)
    assert.not(limiter.peek('client').allowed, 'the refusal of 50 has taken the place of 41')
    const fitsMs = 50 * SECOND + refused.retryAfterMs
    assert.ok(fitsMs >= 53 * SECOND && fitsMs <= 53 * SECOND + granuleMs, 'the entry of 43 has to leave, too')
    at(fitsMs - 1)
    assert.not(limiter.peek('client').allowed)
    at(fitsMs)
    assert.ok(limiter.check('client').allowed)
  })
}

test('10 an hour: of 7 before the hour and 8 after it, only 3 of the 8 are admitted', () => {
  const { limiter, at } = exampleOf({ limit: 10, window: '1h' })
  at(12 * HOUR - 5 * MINUTE)
  for (let i = 0; i < 7; i++) assert.ok(limiter.check('client').allowed)
  at(12 * HOUR + 5 * MINUTE)
  const admitted = Array.from({ length: 8 }, () => limiter.check('client').allowed)
  assert.equal(admitted, [true, true, true, false, false, false, false, false])
  assert.is(limiter.peek('client').retryAfterMs, 51 * MINUTE, 'the 7 leave with their bucket of a minute')
})

test('an hour in buckets of 20 minutes with 10, 20 and 30: the oldest counts whole until its last unit may have left', () => {
  const { limiter, at } = exampleOf({ limit: 60, window: '1h', granularity: '20m' })
  for (const [i, cost] of [10, 20, 30].entries()) {
    at(i * 20 * MINUTE)
    assert.ok(limiter.check('client', cost).allowed)
  }
  at(59 * MINUTE)
  assert.equal([limiter.usage('client'), limiter.usage('client', '10m')], [60, 30])
  at(60 * MINUTE)
  assert.is(limiter.check('client').retryAfterMs, 20 * MINUTE, 'the window still overlaps the bucket of 10')
  at(80 * MINUTE)
  assert.equal([limiter.usage('client'), limiter.check('client', 10).allowed], [50, true])
  at(100 * MINUTE)
  assert.is(limiter.usage('client'), 40)
})

test('an hour in buckets of 20 minutes, smooth: the oldest bucket counts by its part inside the window', () => {
  const { limiter, at } = exampleOf({ limit: 60, window: '1h', granularity: '20m', edge: 'smooth' })
  for (const [i, cost] of [10, 20, 30].entries()) {
    at(i * 20 * MINUTE)
    assert.ok(limiter.check('client', cost).allowed)
  }
  at(70 * MINUTE)
  assert.is(limiter.peek('client').remaining, 5, 'half of the 10 have left')
})

test('a sliding counter of 500 a minute, 400 before and 250 now, at 23:45: the next one is the 351st', () => {
  const { limiter, at } = exampleOf({ limit: 500, window: '1m', algorithm: 'sliding-counter' })
  at(22 * MINUTE + 30 * SECOND)
  for (let i = 0; i < 400; i++) limiter.check('client')
  at(23 * MINUTE + 45 * SECOND - 1)
  limiter.check('client', 250)
  at(23 * MINUTE + 45 * SECOND) // a quarter of the 400 counts
  assert.is(500 - limiter.peek('client', 0).remaining, 350)
  const next = limiter.check('client')
  assert.ok(next.allowed)
  assert.is(500 - next.remaining, 351)
})

test('a sliding counter lets through more than its limit where the window before was used at its end', () => {
  const { limiter, at } = exampleOf({ limit: 100, window: '1m', algorithm: 'sliding-counter' })
  at(1 * MINUTE - 1)
  assert.ok(limiter.check('client', 100).allowed)
  at(1 * MINUTE + 30 * SECOND)
  assert.ok(limiter.check('client', 50).allowed, '150 in 30 seconds: it takes the 100 for evenly spread')
  assert.not(limiter.check('client', 4).allowed)
})

test('a fixed window of 100 a minute lets 200 through across its boundary, where a sliding window lets 100', () => {
  for (const [algorithm, admitted] of [
    ['fixed-window', 200],
    ['sliding-window', 100],
  ] as const) {
    const { limiter, at } = exampleOf({ limit: 100, window: '1m', algorithm })
    let allowed = 0
    for (const moment of [MINUTE - SECOND, MINUTE]) {
      at(moment)
      for (let i = 0; i < 100; i++) if (limiter.check('client').allowed) allowed++
    }
    assert.is(allowed, admitted, algorithm)
  }
})

test('a fixed window from the first request begins with it, and the next one with the first after its end', () => {
  const { limiter, at } = exampleOf({ limit: 2, window: '4s', algorithm: 'fixed-window', align: 'first' })
  at(3 * SECOND)
  assert.is(limiter.check('client').resetMs, 4 * SECOND)
  at(6 * SECOND)
  assert.ok(limiter.check('client').allowed)
  assert.is(limiter.check('client').retryAfterMs, SECOND, 'four seconds after the first')
  at(9 * SECOND)
  const next = limiter.check('client')
  assert.equal([next.allowed, next.resetMs], [true, 4 * SECOND])
})

test('a token bucket of 10, refilled 1 a second, after idle days: 10 at once, then 1 a second', () => {
  const options = { limit: 1, window: '1s', burst: 10, algorithm: 'token-bucket' } as const
  const { limiter, at } = exampleOf(options)
  for (const day of [0, 3, 30, 300]) {
    const start = 24 * 60 * day * MINUTE
    at(start)
    for (let i = 0; i < 10; i++) assert.ok(limiter.check('client').allowed, `day ${day}, request ${i}`)
    for (let second = 0; second < 100; second++) {
      at(start + second * SECOND)
      const { allowed, retryAfterMs } = limiter.check('client')
      assert.equal([allowed, retryAfterMs], second === 0 ? [false, SECOND] : [true, 0])
      assert.is(limiter.check('client').retryAfterMs, SECOND)
    }
  }
})

test('a token bucket keeps its pace for ten years: no part of a token is gained or lost', () => {
  const { limiter, at } = exampleOf({ limit: 7, window: '1s', burst: 3, algorithm: 'token-bucket' })
  const start = 10 * 365.25 * 24 * 60 * MINUTE
  at(start)
  for (let i = 0; i < 3; i++) assert.ok(limiter.check('client').allowed)
  for (let token = 1; token <= 700; token++) {
    at(start + Math.ceil((token * SECOND) / 7) - 1)
    assert.not(limiter.check('client').allowed, `token ${token}, a millisecond early`)
    at(start + Math.ceil((token * SECOND) / 7))
    assert.ok(limiter.check('client').allowed, `token ${token}`)
  }
})

test('5 logins in 10 minutes: the sixth waits until the first is 10 minutes old', () => {
  const { limiter, at } = exampleOf({ limit: 5, window: '10m', granularity: '1s' })
  for (let i = 0; i < 5; i++) {
    at(i * MINUTE)
    assert.ok(limiter.check('alice').allowed)
  }
  at(5 * MINUTE)
  const { allowed, retryAfterSeconds } = limiter.check('alice')
  assert.equal([allowed, retryAfterSeconds], [false, 5 * 60 + 1])
  at(10 * MINUTE + SECOND)
  assert.ok(limiter.check('alice').allowed)
  assert.not(limiter.check('alice').allowed, 'the second is not 10 minutes old')
})

test('10 a second together with 3,000 in 10 minutes: 10 every other second fill 10 minutes, and no more', () => {
  const clock = manualClock(0)
  const rules = [
    { name: 'second', limit: 10, window: '1s' },
    { name: 'minutes', limit: 3_000, window: '10m' },
  ]
  const limiter = createLimiter({ rules, maxKeys: 20, clock })
  const refusedBy = new Set<string>()
  let admitted = 0
  for (let half = 0; half < 5 * 60; half++) {
    clock.set(half * 2 * SECOND)
    for (let i = 0; i < 11; i++) {
      const { allowed, rule } = limiter.check('client')
      if (allowed) admitted++
      else refusedBy.add(rule)
    }
  }
  assert.equal([admitted, [...refusedBy]], [3_000, ['second']])
  clock.set(599.5 * SECOND)
  const refused = limiter.check('client')
  assert.equal([refused.allowed, refused.rule], [false, 'minutes'])
  assert.is(refused.retryAfterMs, 10.5 * SECOND, 'the first 10 leave with their bucket of 10 seconds')
})

test('10,000 in 15 minutes: every one of them, and not one more in any 15 minutes', () => {
  const { limiter, at } = exampleOf({ limit: 10_000, window: '15m' })
  let admitted = 0
  for (let second = 0; second < 15 * 60; second++) {
    at(second * SECOND)
    for (let i = 0; i < 20; i++) if (limiter.check('client').allowed) admitted++
  }
  assert.is(admitted, 10_000)
  at(15 * MINUTE + 14 * SECOND)
  assert.not(limiter.check('client').allowed)
  at(15 * MINUTE + 15 * SECOND) // one granularity later, the first 15 seconds have left
  assert.is(limiter.peek('client').remaining, 300)
})

test('a capacity of 5 in 1 second is 5, not 6, also for requests at the same moment', () => {
  const { limiter, at } = exampleOf({ limit: 5, window: '1s' })
  at(10 * SECOND)
  const admitted = Array.from({ length: 6 }, () => limiter.check('client').allowed)
  assert.equal(admitted, [true, true, true, true, true, false])
  at(11 * SECOND - 1)
  assert.not(limiter.check('client').allowed)
  at(11 * SECOND + 17) // a second and one granularity later
  assert.ok(limiter.check('client', 5).allowed)
})

test.run()
