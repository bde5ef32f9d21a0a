import { attachLimiter, createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { effectStamp } from '#millrace/cli/demo/effect.js'

test('a decision takes effect at its reading, or where a clock was ahead at the start of the granule it is charged in', () => {
  const late = 10_250.5
  const early = 10_120.25
  const ahead = createLimiter({ limit: 5, window: '1s', granularity: '100ms', clock: { now: () => late } })
  const behind = attachLimiter(ahead.share(), { clock: { now: () => early } })
  const stampOf = effectStamp(ahead.rule)
  assert.is(stampOf(behind.check('alone'), early), early)
  assert.is(stampOf(ahead.check('both'), late), late)
  assert.is(stampOf(behind.check('both'), early), 10_200)
})

test.run()
