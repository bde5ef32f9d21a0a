// run: once
import { inspect } from 'node:util'
import { attachLimiter, createLimiter, type Limiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects, assertSame, limiterWith, START_MS } from './support.js'

/** A clock whose reading the test sets. */
class TellingClock {
  reading: unknown
  constructor(reading: unknown) {
    this.reading = reading
  }
  now(): number {
    return this.reading as number
  }
}

const NO_READINGS = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  '5',
  undefined,
  null,
  5n,
  {},
]

test('a clock without now() is refused', () => {
  for (const clock of [null, 5, 'monotonic', {}, { now: 5 }, Date.now]) {
    const act = () => limiterWith({ clock: clock as never })
    // The class Date has a function now(), the function Date.now has none.
    assertRaises(act, 'ERR_MILLRACE_INVALID_CLOCK', 'clock', inspect(clock))
  }
})

test('a clock whose now() does not return a finite number is refused', () => {
  for (const reading of NO_READINGS) {
    const act = () => limiterWith({ clock: new TellingClock(reading) })
    const error = assertRaises(act, 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()', inspect(reading))
    assertSame(error.value, reading)
  }
})

test('the default clock and Date are accepted as clocks', () => {
  assert.ok(createLimiter({ limit: 1, window: '1h', maxKeys: 1 }).check('key').allowed)
  assert.ok(createLimiter({ limit: 1, window: '1h', maxKeys: 1, clock: Date }).check('key').allowed)
})

const READS_CLOCK: Record<string, (limiter: Limiter) => unknown> = {
  check: (limiter) => limiter.check('key'),
  'check of cost 0': (limiter) => limiter.check('key', 0),
  'check by handle': (limiter) => limiter.check(limiter.handle('key')),
  peek: (limiter) => limiter.peek('key'),
  checkMany: (limiter) => limiter.checkMany(['key']),
  usage: (limiter) => limiter.usage('key'),
  'refund by key': (limiter) => limiter.refund('key', 1),
  penalize: (limiter) => limiter.penalize('key', 1),
  block: (limiter) => limiter.block('key', '1m'),
  unblock: (limiter) => limiter.unblock('key'),
  clear: (limiter) => limiter.clear('key'),
}
for (const [name, act] of Object.entries(READS_CLOCK)) {
  test(`${name}: a clock that fails later causes an error then, charges nothing, and may recover`, () => {
    const clock = new TellingClock(START_MS)
    const { limiter } = limiterWith({ clock })
    limiter.check('key')
    for (const reading of [Number.NaN, Number.POSITIVE_INFINITY, undefined, 'soon', `${START_MS + 5_000}`]) {
      clock.reading = reading
      assertRaises(() => act(limiter), 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()', inspect(reading))
    }
    clock.reading = START_MS
    assert.is(limiter.usage('key'), 1)
    assert.not.throws(() => act(limiter))
  })
}

test('a reading that is a string or a bigint is an error, also within the granule of the last reading', () => {
  const clock = new TellingClock(START_MS)
  const { limiter } = limiterWith({ clock })
  limiter.check('key')
  for (const reading of [`${START_MS}`, BigInt(START_MS), { valueOf: () => START_MS }]) {
    clock.reading = reading
    const act = () => limiter.check('key')
    assertRaises(act, 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()', inspect(reading))
  }
})

test('wait: a failing clock is a rejection', async () => {
  const clock = new TellingClock(START_MS)
  const { limiter } = limiterWith({ clock })
  clock.reading = Number.NaN
  await assertRejects(() => limiter.wait('key'), 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
})

test('an error thrown by a clock reaches the caller, and the limiter works afterwards', () => {
  let broken = false
  const own = new Error('no time')
  const clock = {
    now() {
      if (broken) throw own
      return START_MS
    },
  }
  const { limiter } = limiterWith({ clock })
  broken = true
  try {
    limiter.check('key')
    assert.unreachable('nothing was thrown')
  } catch (error) {
    assert.is(error, own)
  }
  broken = false
  assert.is(limiter.check('key').remaining, 4)
})

test('a manual clock accepts only finite numbers, and otherwise keeps its time', () => {
  for (const ms of NO_READINGS.filter((reading) => reading !== undefined)) {
    assertRaises(() => manualClock(ms as never), 'ERR_MILLRACE_INVALID_CLOCK', 'ms', inspect(ms))
  }
  const clock = manualClock(7)
  for (const ms of NO_READINGS) {
    assertRaises(() => clock.set(ms as never), 'ERR_MILLRACE_INVALID_CLOCK', 'ms', inspect(ms))
    assertRaises(() => clock.advance(ms as never), 'ERR_MILLRACE_INVALID_CLOCK', 'ms', inspect(ms))
  }
  assert.is(clock.now(), 7)
})

test('a limiter with a custom clock can only be attached to with a clock', () => {
  const clock = new TellingClock(START_MS)
  const { limiter } = limiterWith({ clock })
  assertRaises(() => attachLimiter(limiter.share()), 'ERR_MILLRACE_INVALID_SHARE', 'shared.clock')
  for (const bad of [null, {}, 5]) {
    const act = () => attachLimiter(limiter.share(), { clock: bad as never })
    assert.throws(act, (error: { code: string }) => /INVALID_(CLOCK|SHARE)/.test(error.code), inspect(bad))
  }
  const act = () => attachLimiter(limiter.share(), { clock: new TellingClock(Number.NaN) })
  assertRaises(act, 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
  limiter.check('key')
  assert.is(attachLimiter(limiter.share(), { clock }).usage('key'), 1)
})

test('a reading too large to distinguish granules is an error, not an endless loop', () => {
  for (const reading of [2 ** 53, 1e18, -(2 ** 53)]) {
    const act = () =>
      createLimiter({ limit: 5, window: 60, maxKeys: 20, clock: new TellingClock(reading) }).check('a', 5)
        .remaining
    assertRaises(act, 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
  }
})

test.run()
