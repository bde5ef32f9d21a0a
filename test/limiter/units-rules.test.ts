// run: once, modules
// Several rules with units: attached limiters, and quantities at the limit of doubles. What holds for every limiter
// is in test/conformance/units-rules.test.ts.
import { attachLimiter, createLimiter, type Decision, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachPool } from '#millrace/create/attach-limiter.js'
import { usageOf } from '../conformance/several-rules.js'
import { START_MS } from './support.js'

/** 250,000 in a second, 500 units of 1 KB in a minute, and 10 units of 64 KB in an hour. */
const MIXED = {
  rules: [
    { name: 'exact', limit: 250_000, window: '1s' },
    { name: 'fine', limit: '500KB', unit: '1KB', window: '1m' },
    { name: 'coarse', limit: '640KB', unit: '64KB', window: '1h' },
  ],
} as const

const leftOf = ({ rules }: Decision) => rules.map(({ remaining }) => remaining)

test('an attached thread and an attached pool know the unit of each rule', async () => {
  const limiter = createLimiter({ ...MIXED, maxKeys: 20, clock: manualClock(START_MS) })
  const attached = attachLimiter(limiter.share())
  assert.equal(attached.rules, limiter.rules)
  attached.check('key', 100_001)
  assert.equal(await usageOf(limiter), [100_001, 101_000, 128_000])
  const pool = attachPool(attached.share())
  assert.equal(pool.rules, limiter.rules)
  assert.equal(leftOf(await pool.check('key', 1)), [149_998, 398_000, 448_000])
  await pool.close()
})

for (const engine of ['inline', 'pool'] as const) {
  test(`${engine}: quantities of up to 2^53 - 1 are exact in each rule`, async () => {
    const most = Number.MAX_SAFE_INTEGER
    const rules = [
      { name: 'odd', limit: most, unit: 4_294_967_297, window: '1m' },
      { name: 'even', limit: 2 ** 52, unit: 2 ** 31, window: '1m' },
    ]
    const limiter = createLimiter({ rules, maxKeys: 20, clock: manualClock(START_MS), engine })
    const wholes = (quantity: number) => rules.map(({ unit }) => Math.ceil(quantity / unit) * unit)
    const limits = limiter.rules.map(({ limit }) => limit)
    const cost = 2 ** 50 + 1
    const decision = await limiter.check('key', cost)
    assert.equal(
      leftOf(decision),
      wholes(cost).map((used, i) => limits[i]! - used),
    )
    assert.equal(await usageOf(limiter), wholes(cost))
    const batch = await limiter.checkMany(['key', 'new'], [cost, 1], { remaining: true })
    assert.equal([...batch.allowed], [1, 1])
    assert.equal([...batch.remaining!], [limits[1]! - 2 * wholes(cost)[1]!, limits[0]! - 4_294_967_297])
    assert.is(await limiter.refund(decision), Math.max(...wholes(cost)))
    assert.equal(await usageOf(limiter), wholes(cost))
    const reservation = await limiter.reserve('other', 2 ** 40)
    assert.is(
      await reservation.commit(2 ** 52 - 1),
      Math.max(...wholes(2 ** 52 - 1).map((used, i) => used - wholes(2 ** 40)[i]!)),
    )
    assert.equal(await usageOf(limiter, 'other'), wholes(2 ** 52 - 1))
    await limiter.close()
  })

  test(`${engine}: a rule with a unit in shadow mode refuses nothing`, async () => {
    const rules = [
      { name: 'tried', limit: 20, unit: 10, window: '1m', shadow: true },
      { name: 'held', limit: 10_000_000, unit: 10, window: '1m' },
    ]
    const limiter = createLimiter({ rules, maxKeys: 20, engine })
    for (let i = 0; i < 2; i++) assert.ok((await limiter.check('key', 1)).shadow!.allowed)
    const large = await limiter.check('key', 5_000_001)
    assert.equal(
      [large.allowed, large.shadow!.allowed, large.rules[0]!.shadow!.allowed],
      [true, false, false],
    )
    assert.is(await limiter.refund(large), 5_000_010)
    assert.equal(await usageOf(limiter), [20, 20])
    await limiter.close()
  })
}

test('the smallest part left is found even if products of quantities exceed 2^53', () => {
  const unit = 2 ** 30 + 1
  const more = { name: 'more', limit: 4_194_302 * unit, unit, window: '1m' } as const
  const less = { name: 'less', limit: 4_194_301 * unit, unit, window: '1m' } as const
  for (const rules of [
    [more, less],
    [less, more],
  ]) {
    // 4,194,301 / 4,194,302 of `more` are left, and 4,194,300 / 4,194,301 of `less`.
    assert.is(createLimiter({ rules, maxKeys: 20 }).check('key', 1).rule, 'less')
  }
})

test.run()
