// run: typescript
import { attachLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects, limiterWith } from './support.js'

const untyped = (value: unknown) => value as never

test('an unknown option of a method is refused by name, and nothing is charged', async () => {
  const { limiter } = limiterWith()
  assertRaises(
    () => limiter.checkMany(['a'], 1, untyped({ remainin: true })),
    'ERR_MILLRACE_INVALID_OPTION',
    'options',
  )
  assertRaises(
    () => limiter.checkMany(['a'], 1, untyped({ remaining: 'yes' })),
    'ERR_MILLRACE_INVALID_OPTION',
    'remaining',
  )
  await assertRejects(
    () => limiter.wait('a', untyped({ costs: 3 })),
    'ERR_MILLRACE_INVALID_OPTION',
    'options',
  )
  assertRaises(
    () => limiter.update('default', untyped({ limit: 9, edge: 'smooth' })),
    'ERR_MILLRACE_INVALID_OPTION',
    'change',
  )
  assert.equal([limiter.usage('a'), limiter.rule.limit], [0, 5])
})

test('an invalid clock is refused when a thread attaches, also null', () => {
  const { limiter } = limiterWith()
  assertRaises(
    () => attachLimiter(limiter.share(), untyped({ clock: null })),
    'ERR_MILLRACE_INVALID_CLOCK',
    'clock',
  )
})

test('a manual clock cannot advance beyond the largest number', () => {
  const clock = manualClock(1e308)
  assertRaises(() => clock.advance(1e308), 'ERR_MILLRACE_INVALID_CLOCK', 'ms')
  assert.is(clock.now(), 1e308)
})

test.run()
