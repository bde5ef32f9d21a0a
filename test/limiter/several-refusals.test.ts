// run: once
// Several rules, of which some charge what they refuse (`countRefused`) or allow it (`shadow`).
import { attachLimiter, createLimiter, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { resolved } from './support.js'

/** A limiter of 2 in 10 seconds and of 5 in a minute. */
function limiterOf(burst: Partial<RuleOptions>, minute: Partial<RuleOptions> = {}) {
  const clock = manualClock(0)
  const rules = [
    { name: 'burst', limit: 2, window: '10s', granularity: '1s', ...burst },
    { name: 'minute', limit: 5, window: '1m', granularity: '1s', ...minute },
  ]
  return { clock, limiter: createLimiter({ rules, maxKeys: 20, clock }) }
}

test('a rule in shadow mode refuses nothing, and the others go on deciding', () => {
  const { limiter } = limiterOf({ shadow: true })
  const decisions = Array.from({ length: 6 }, () => limiter.check('key'))
  assert.equal(
    decisions.map(({ allowed, shadow }) => [allowed, shadow!.allowed]),
    [
      [true, true],
      [true, true],
      [true, false],
      [true, false],
      [true, false],
      [false, false],
    ],
  )
  assert.equal(decisions[2]!.rules[0]!.shadow, { allowed: false, retryAfterMs: 11_000 })
  assert.is(decisions[2]!.rules[1]!.shadow, undefined)
  assert.equal([decisions[5]!.rule, decisions[5]!.shadow!.retryAfterMs], ['minute', 61_000])
  const used = ['burst', 'minute'].map((rule) => limiter.usage('key', undefined, { rule }))
  assert.equal(used, [2, 5])
  const { allowed, denied, shadowDenied } = limiter.stats()
  assert.equal([allowed, denied, shadowDenied], [5, 1, 3])
  assert.ok(JSON.stringify(decisions[2]).includes('"shadow":{"allowed":false,"retryAfterMs":11000}'))
})

test('a cost above the limit of a rule in shadow mode is charged in the others', () => {
  const { limiter } = limiterOf({ shadow: true })
  const { allowed, shadow } = limiter.check('key', 4)
  assert.equal([allowed, shadow], [true, { allowed: false, retryAfterMs: Infinity }])
  assert.ok(limiter.peek('key', 1).allowed)
  assert.is(limiter.usage('key', undefined, { rule: 'minute' }), 4)
  assert.is(limiter.check('key', 6).rule, 'minute', 'a cost above the limit of the other one is refused')
})

test('a rule charges its own refusals, and the others do not', () => {
  const { limiter, clock } = limiterOf({ countRefused: true })
  for (let i = 0; i < 4; i++) limiter.check('key')
  const used = () => ['burst', 'minute'].map((rule) => limiter.usage('key', undefined, { rule }))
  assert.equal(used(), [4, 2])
  clock.advance(5_000)
  assert.is(limiter.check('key').retryAfterMs, 6_000, 'the five leave, but this one')
  clock.advance(6_000)
  assert.ok(limiter.check('key').allowed)
  const attached = attachLimiter(limiter.share(), {})
  attached.check('key')
  assert.equal(used(), [3, 3])
})

test('attempts of wait are not charged as refusals', async () => {
  const { limiter, clock } = limiterOf({ countRefused: true }, { countRefused: true })
  limiter.check('key', 2)
  const waiting = limiter.wait('key')
  for (let i = 0; i < 3; i++) limiter.refund('key', 0)
  assert.is(limiter.usage('key'), 2)
  clock.advance(11_000)
  assert.ok((await resolved(waiting)).allowed)
  assert.is(limiter.usage('key', undefined, { rule: 'minute' }), 3)
})

test.run()
