// run: also-long

import { inspect } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { limiterWith, START_MS } from './support.js'

test('resetMs of a refusal by a block is that of the block, even if it is read after the block', () => {
  const { clock, limiter } = limiterWith()
  limiter.block('key', '10s')
  const refused = limiter.check('key')
  clock.advance(15_000)
  assert.ok(refused.resetMs >= 10_000 && refused.resetMs < 10_063, `${refused.resetMs}`)
  assert.is(limiter.peek('key', 0).resetMs, 0, 'nothing counts any more')
})

test('resetMs of the last half millisecond of a block is 1', () => {
  const { clock, limiter } = limiterWith()
  limiter.block('key', 62) // until 62.5
  clock.advance(62)
  assert.is(limiter.check('key').resetMs, 1)
})

test('toJSON has the seven fields, and computes them once', () => {
  const { limiter } = limiterWith({ name: 'api' })
  const decision = limiter.check('key', 2)
  const json = {
    allowed: true,
    limit: 5,
    remaining: 3,
    retryAfterMs: 0,
    retryAfterSeconds: 0,
    resetMs: 61_000 - (START_MS % 1_000),
    rule: 'api',
  }
  assert.equal(decision.toJSON(), json)
  limiter.check('key')
  assert.equal(JSON.parse(JSON.stringify(decision)), json)
  assert.is(decision.remaining, 3)
})

test('console.log shows the seven fields and no internal ones', () => {
  const { limiter } = limiterWith()
  const decision = limiter.check('key', 2)
  assert.is(inspect(decision), inspect(decision.toJSON()))
  assert.match(inspect(decision), /allowed: true.*limit: 5.*remaining: 3.*rule: 'default'/s)
  assert.match(inspect([limiter.check('key', 9)], { depth: 9 }), /retryAfterMs: Infinity/)
})

test('a decision names its rule: default, or the given name', () => {
  assert.is(limiterWith().limiter.check('key').rule, 'default')
  assert.is(limiterWith({ name: 'per user' }).limiter.peek('key').rule, 'per user')
})

test('the limit of a decision does not change with the limiter’s', () => {
  const { limiter } = limiterWith()
  const before = limiter.check('key')
  limiter.update('default', { limit: 2 })
  const after = limiter.check('key')
  assert.equal([before.limit, after.limit], [5, 2])
  assert.equal([before.remaining, after.remaining], [4, 0], 'each by its own')
})

test('cost 0 is allowed at a full key, charges nothing, and does not insert a new key', () => {
  const { limiter } = limiterWith()
  const first = limiter.check('new', 0)
  assert.equal(first.toJSON(), {
    allowed: true,
    limit: 5,
    remaining: 5,
    retryAfterMs: 0,
    retryAfterSeconds: 0,
    resetMs: 0,
    rule: 'default',
  })
  assert.is(limiter.stats().keys, 0)
  limiter.check('full', 5)
  assert.ok(limiter.check('full', 0).allowed)
  assert.ok(limiter.check('full', -0).allowed)
  assert.is(limiter.usage('full'), 5)
  assert.is(limiter.stats().keys, 1)
})

test('cost 0 is refused while the key is blocked', () => {
  const { clock, limiter } = limiterWith()
  limiter.block('key', 1_000)
  for (const decision of [limiter.check('key', 0), limiter.peek('key', 0)]) {
    assert.not(decision.allowed)
    assert.is(decision.remaining, 0)
    assert.ok(decision.retryAfterMs >= 1_000 && decision.retryAfterMs <= 1_063)
  }
  clock.advance(1_063)
  assert.ok(limiter.check('key', 0).allowed)
})

test('a cost above the limit is refused without an error, charges nothing, and has retryAfterMs Infinity', () => {
  const { limiter } = limiterWith()
  for (const cost of [6, 2 ** 22 - 1, 2 ** 22, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, 1e300]) {
    for (const decision of [limiter.check('key', cost), limiter.peek('key', cost)]) {
      assert.not(decision.allowed, `${cost}`)
      assert.is(decision.retryAfterMs, Number.POSITIVE_INFINITY)
      assert.is(decision.remaining, 5)
      assert.is(limiter.refund(decision), 0)
    }
    assert.is(limiter.checkMany(['key'], cost).retryAfterMs(0), Number.POSITIVE_INFINITY)
  }
  assert.is(limiter.stats().keys, 0)
  assert.ok(limiter.check('key', 5).allowed)
})

const anyRule = fc.record({
  limit: fc.constantFrom(6, 40),
  edge: fc.constantFrom('strict' as const, 'smooth' as const),
  startMs: fc.oneof(
    fc.constantFrom(0, 0.5, START_MS, 1e9 + 1 / 3, 1.7e12),
    fc.double({ min: 0, max: 1e12, noNaN: true }),
  ),
  windowMs: fc.constantFrom(1, 7, 250, 1_000, 60_000, 86_400_000),
  parts: fc.constantFrom(1, 3, 10, 60),
})
const anySteps = fc.array(
  fc.record({
    advance: fc.integer({ min: 0, max: 110 }),
    part: fc.integer({ min: 0, max: 100 }),
  }),
  { minLength: 2, maxLength: 25 },
)

test('a refused cost fits exactly at retryAfterMs, and the whole limit exactly at resetMs', () => {
  let refused = 0
  fc.assert(
    fc.property(anyRule, anySteps, ({ limit, edge, startMs, windowMs, parts }, steps) => {
      const { clock, limiter } = limiterWith({
        limit,
        window: windowMs,
        granularity: windowMs / parts,
        edge,
      })
      clock.set(startMs)
      for (const { advance, part } of steps) {
        const cost = Math.round((part / 100) * limit)
        clock.advance((advance / 100) ** 3 * windowMs)
        const now = clock.now()
        const decision = limiter.check('key', cost)
        assert.is(decision.remaining, limiter.peek('key', 0).remaining)
        if (decision.allowed) assert.is(decision.retryAfterMs, 0)
        else {
          refused++
          const { retryAfterMs } = decision
          assert.ok(Number.isInteger(retryAfterMs) && retryAfterMs >= 1, `${retryAfterMs}`)
          clock.set(now + retryAfterMs - 1)
          assert.not(limiter.peek('key', cost).allowed, 'a millisecond early')
          clock.set(now + retryAfterMs)
          assert.ok(limiter.peek('key', cost).allowed, 'at the moment said')
        }
        const last = limiter.peek('key', 0)
        const at = clock.now()
        if (last.resetMs > 0) {
          clock.set(at + last.resetMs - 1)
          assert.ok(limiter.peek('key').remaining < limit, 'a millisecond early')
        }
        clock.set(at + last.resetMs)
        assert.is(limiter.peek('key').remaining, limit, 'all is back')
        clock.set(now)
      }
    }),
    { numRuns: 400 },
  )
  assert.ok(refused > 500, `${refused} refusals checked`)
})

test.run()
