// run: once, modules
// Rules with the option `unit`: what their objects show, attached limiters, and units of a special size. What
// holds for every limiter is in test/conformance/units.test.ts.
import { inspect } from 'node:util'
import { attachLimiter, createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachPool } from '#millrace/create/attach-limiter.js'
import { decidedBy, type Either, ENGINES } from '../engines/both.js'
import { START_MS } from './support.js'

/** Ten units of 64 KB in a minute. */
const TEN = { limit: '640KB', unit: '64KB' } as const

for (const engine of ENGINES) {
  const testBoth = (name: string, act: (limiter: Either) => Promise<void>) =>
    test(`${engine}: ${name}`, async () => {
      await using made = decidedBy(engine, TEN)
      await act(made.limiter)
    })

  testBoth('the rule shows its unit, and so does console.log', async (limiter) => {
    const { limit, unit } = limiter.rule
    assert.equal([limit, unit, limiter.rules.length], [640_000, 64_000, 1])
    assert.match(inspect(limiter), 'limit: 640000')
    assert.match(inspect(limiter), 'unit: 64000')
  })

  testBoth('toJSON has quantities, and Infinity becomes a number', async (limiter) => {
    const { resetMs, ...fields } = (await limiter.check('key', 100_000)).toJSON()
    assert.equal(fields, {
      allowed: true,
      limit: 640_000,
      remaining: 512_000,
      retryAfterMs: 0,
      retryAfterSeconds: 0,
      rule: 'default',
    })
    assert.ok(resetMs > 59_000 && resetMs <= 61_000)
    const refused = await limiter.check('key', 640_001)
    assert.is(refused.toJSON().retryAfterMs, Number.MAX_SAFE_INTEGER)
    assert.equal(JSON.parse(JSON.stringify(refused)), refused.toJSON())
    assert.match(inspect(refused), 'remaining: 512000')
    const all = { ...refused.toJSON(), retryAfterMs: Number.POSITIVE_INFINITY }
    const copy = engine === 'pool' ? all : { allowed: false, limit: 640_000, rule: 'default' }
    assert.equal({ ...refused }, copy)
    assert.equal(structuredClone(refused), { ...refused })
    assert.equal(refused.rules[0]!.remaining, 512_000)
    assert.is(refused.shadow, undefined)
  })
}

test('an attached thread and an attached pool know the unit, and share the counts', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ ...TEN, window: '1m', maxKeys: 20, clock })
  const attached = attachLimiter(structuredClone(limiter.share()))
  assert.equal(attached.rule, limiter.rule)
  assert.is(attached.check('key', 64_001).remaining, 512_000)
  assert.is(limiter.usage('key'), 128_000)
  attached.update('default', { limit: '1MB' })
  assert.is(limiter.rule.limit, 960_000)
  const pool = attachPool(attached.share())
  assert.equal(pool.rule, limiter.rule)
  assert.is((await pool.check('key', 1)).remaining, 768_000)
  await pool.close()
  await attached.close()
  assert.throws(() => attached.check('key', 1), /closed limiter/)
})

test('a rule with a unit of 1 accepts sizes, and counts like a rule without a unit', () => {
  const limiter = createLimiter({ limit: '4MB', unit: '1B', window: '1m' })
  assert.is(limiter.check('key', 1_234_567).remaining, 4e6 - 1_234_567)
  assert.is(limiter.rule.unit, 1)
})

test('a rule without a unit has no field `unit`', () => {
  const limiter = createLimiter({ limit: 10, window: '1m' })
  assert.not('unit' in limiter.rule)
  assert.instance(limiter.checkMany(['key'], 1, { remaining: true }).remaining, Int32Array)
})

test('the smooth edge weighs whole units', () => {
  const clock = manualClock(0)
  const limiter = createLimiter({
    limit: '1MB',
    unit: '1KB',
    window: '10s',
    granularity: '10s',
    edge: 'smooth',
    clock,
  })
  limiter.check('key', 800_000)
  clock.advance(15_000)
  assert.is(limiter.peek('key', 1).remaining, 600_000)
})

test.run()
