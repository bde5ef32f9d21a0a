// run: typescript, full
// Threads that stop for seconds or hours in the middle of an operation.
import { attachLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { diesAt } from './interrupted.js'
import { everywhere, HOUR, STEP } from './interrupted-plays.js'

test('a thread that stalls while it finishes a conversion forgets nothing if the window changes again', () => {
  let othersAdmitted = 0
  for (let hasDied = true, point = 0; hasDied; point += STEP) {
    let isOtherAdmitted = false
    everywhere({
      options: { limit: 2, window: '6s' },
      before: ({ limiter, other }) => {
        limiter.check('key')
        limiter.update('default', { window: '1s' })
        hasDied = diesAt(point, () => other.check('key'))
      },
      act: (limiter) => limiter.check('key').allowed,
      between: ({ clock, limiter, other }) => {
        isOtherAdmitted = attachLimiter(limiter.share()).check('key').allowed
        other.update('default', { window: '10s' })
        clock.advance(3_000)
      },
      judge: (_, isAdmitted, at) => {
        if (isOtherAdmitted) othersAdmitted++
        assert.not(isOtherAdmitted && isAdmitted, `${at}, another dies at ${point}`)
      },
    })
  }
  assert.ok(othersAdmitted > 0, 'the thread between is admitted')
})

test('a thread that stops for hours while it claims a way inherits the counts of the way', () => {
  everywhere({
    options: { onFull: 'evict', window: '1d', granularity: '1h' },
    before: ({ limiter }) => limiter.check('key', 5),
    act: (limiter) => limiter.check('rival').allowed,
    between: ({ clock, other }) => {
      clock.advance(3 * HOUR)
      other.refund('key', 0) // moves the tick, and changes nothing else
    },
    judge: (_, isAdmitted, at) => assert.not(isAdmitted, at),
  })
})

test('a thread that stops twice for more than an hour does not discard counts of other threads', () => {
  everywhere(
    {
      options: { limit: 1 },
      before: ({ clock, limiter }) => {
        limiter.check('key')
        clock.advance(62_000)
      },
      act: (limiter) => limiter.check('key').allowed,
      between: ({ clock, other }) => {
        clock.advance(HOUR + 400_000)
        assert.ok(other.check('key').allowed)
        clock.advance(1_000)
      },
      judge: ({ other }, _, at) => assert.not(other.check('key').allowed, at),
    },
    2,
  )
})

test.run()
