// Several rules of which some have the option `unit`: one cost, and each rule counts it in its own units.
import { inspect } from 'node:util'
import { attachLimiter, createLimiter, type Decision, MillraceLimited, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, START_MS, settled } from './support.js'

/** 1,000 units of 1 in a second, 100 KB in units of 1 KB a minute, and 10 units of 64 KB in an hour. */
function mixed(more: object = {}) {
  const clock = manualClock(START_MS)
  const rules = [
    { name: 'exact', limit: 250_000, window: '1s' },
    { name: 'fine', limit: '500KB', unit: '1KB', window: '1m' },
    { name: 'coarse', limit: '640KB', unit: '64KB', window: '1h' },
  ] as const
  return { clock, limiter: createLimiter({ rules, maxKeys: 20, clock, ...more }) }
}

const usages = (limiter: ReturnType<typeof mixed>['limiter']) =>
  ['exact', 'fine', 'coarse'].map((rule) => limiter.usage('key', undefined, { rule }))
const partsOf = ({ rules }: Decision) =>
  rules.map(({ allowed, limit, remaining }) => [allowed, limit, remaining])

test('each rule charges one cost in its own units, and has its own figures', () => {
  const { limiter } = mixed()
  assert.equal(
    limiter.rules.map(({ limit, unit }) => [limit, unit]),
    [
      [250_000, undefined],
      [500_000, 1_000],
      [640_000, 64_000],
    ],
  )
  const decision = limiter.check('key', 100_001)
  assert.equal(partsOf(decision), [
    [true, 250_000, 149_999],
    [true, 500_000, 399_000],
    [true, 640_000, 512_000],
  ])
  assert.equal([decision.rule, decision.limit, decision.remaining], ['exact', 250_000, 149_999])
  assert.equal(usages(limiter), [100_001, 101_000, 128_000])
  assert.equal(
    decision.toJSON().rules!.map(({ remaining }) => remaining),
    [149_999, 399_000, 512_000],
  )
  assert.match(inspect(decision), 'remaining: 512000')
})

test('the rule that decides is the one with the smallest part left, whatever its unit', () => {
  const { clock, limiter } = mixed()
  for (let i = 0; i < 9; i++) {
    assert.ok(limiter.check('key', 1).allowed)
    clock.advance(1_100)
  }
  const last = limiter.check('key', 1)
  assert.equal([last.allowed, last.rule, last.remaining], [true, 'coarse', 0])
  const refused = limiter.check('key', 1)
  assert.equal([refused.allowed, refused.rule], [false, 'coarse'])
  assert.ok(refused.retryAfterMs > 3_500_000)
  assert.equal(usages(limiter), [1, 10_000, 640_000])
})

test('parts left are compared exactly when their products exceed 2^53', () => {
  const unit = 2 ** 30 + 1
  const rules = [
    { name: 'a', limit: 4_194_302 * unit, unit, window: '1m' },
    { name: 'b', limit: 4_194_301 * unit, unit, window: '1m' },
  ] as const
  for (const [first, second, rule] of [
    [rules[0], rules[1], 'b'],
    [rules[1], rules[0], 'b'],
  ] as const) {
    const limiter = createLimiter({ rules: [first, second], maxKeys: 20 })
    assert.is(limiter.check('key', 1).rule, rule) // 4194301/4194302 of a are left, 4194300/4194301 of b
  }
})

test('if a rule refuses, the others take back exactly their units', () => {
  const { limiter } = mixed()
  limiter.check('key', 200_000)
  const before = usages(limiter)
  const refused = limiter.check('key', 100_000)
  assert.equal([refused.allowed, refused.rule], [false, 'exact'])
  assert.equal(partsOf(refused), [
    [false, 250_000, 50_000],
    [true, 500_000, 300_000],
    [true, 640_000, 384_000],
  ])
  assert.equal(usages(limiter), before)
  const { clock, limiter: other } = mixed()
  for (let i = 0; i < 4; i++, clock.advance(1_100)) other.check('key', 120_000)
  const later = other.check('key', 120_000) // 8 of 10 coarse units are used, and 480 of 500 fine ones
  assert.equal([later.allowed, later.rule], [false, 'fine'])
  assert.equal(usages(other), [0, 480_000, 512_000])
})

test('a cost above one rule’s limit is refused by that rule, and nothing is charged', () => {
  const { limiter } = mixed()
  const refused = limiter.check('key', 250_001)
  assert.equal([refused.rule, refused.retryAfterMs], ['exact', Number.POSITIVE_INFINITY])
  const within = limiter.check('key', 550_000, { limit: { exact: 600_000 } })
  assert.equal([within.rule, within.limit, within.retryAfterMs], ['fine', 500_000, Number.POSITIVE_INFINITY])
  assert.equal(usages(limiter), [0, 0, 0])
  assert.is(limiter.stats().keys, 0)
})

test('limits of a call and of update are sizes for the rules with a unit, and integers for the others', () => {
  const { limiter } = mixed()
  const decision = limiter.peek('key', 1, { limit: { exact: 7, fine: '2.999KB', coarse: 200_000 } })
  assert.equal(
    decision.rules.map(({ limit }) => limit),
    [7, 2_000, 192_000],
  )
  const act = () => limiter.check('key', 1, { limit: { exact: '7KB' } })
  assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'limit.exact')
  assertRaises(
    () => limiter.check('key', 1, { limit: { coarse: 63_999 } }),
    'ERR_MILLRACE_INVALID_OPTION',
    'limit.coarse',
  )
  limiter.update('coarse', { limit: '1.28GB' })
  assertRaises(() => limiter.update('exact', { limit: '5KB' }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
  assert.equal(
    limiter.rules.map(({ limit }) => limit),
    [250_000, 500_000, 1_280_000_000],
  )
})

test('refunds and penalties act on each rule in its units, and return the most', () => {
  const { limiter } = mixed()
  const decision = limiter.check('key', 100_001)
  assert.is(limiter.refund(decision), 128_000)
  assert.is(limiter.refund(decision), 0)
  assert.equal(usages(limiter), [0, 0, 0])
  limiter.check('key', 200_000)
  assert.is(limiter.refund('key', 1_500), 1_500)
  assert.equal(usages(limiter), [198_500, 199_000, 256_000])
  assert.is(limiter.refund('key', 130_000), 130_000)
  assert.equal(usages(limiter), [68_500, 69_000, 128_000])
  assert.ok(limiter.penalize('key', 1))
  assert.equal(usages(limiter), [68_501, 70_000, 192_000])
  const most = 4_194_303 // the rule without a unit counts no more in a bucket
  const error = assertRaises(() => limiter.penalize('key', most + 1), 'ERR_MILLRACE_INVALID_COST', 'cost')
  assert.match(error.expected, `${most}`)
})

test('a reservation leaves in each rule the units of the actual cost', () => {
  const settlements: [cost: number, actual: number, change: number, used: number[]][] = [
    [100_000, 70_000, -30_000, [70_000, 70_000, 128_000]],
    [100_000, 63_999, -64_000, [63_999, 64_000, 64_000]],
    [100_000, 0, -128_000, [0, 0, 0]],
    [100_000, 100_001, 1_000, [100_001, 101_000, 128_000]],
    [100_000, 300_000, 200_000, [300_000, 300_000, 320_000]],
  ]
  for (const [cost, actual, change, used] of settlements) {
    const { limiter } = mixed()
    const reservation = limiter.reserve('key', cost)
    assert.is(reservation.commit(actual), change, `${cost}, then ${actual}`)
    assert.equal(usages(limiter), used, `${cost}, then ${actual}`)
  }
})

test('checkMany decides by all rules, and returns quantities as doubles', () => {
  const { limiter } = mixed()
  const batch = limiter.checkMany(['key', 'key', 'other', 'key'], [1, 200_000, 500_000, 60_000], {
    remaining: true,
  })
  assert.equal([...batch.allowed], [1, 1, 0, 0])
  assert.instance(batch.remaining, Float64Array)
  assert.equal([...batch.remaining!], [576_000, 49_999, 250_000, 49_999])
  assert.is(batch.retryAfterMs(2), Number.POSITIVE_INFINITY)
})

test('wait, checkOrThrow and handles decide by all rules', async () => {
  const { clock, limiter } = mixed()
  const handle = limiter.handle('key')
  limiter.check(handle, 250_000)
  assert.throws(
    () => limiter.checkOrThrow(handle, 1),
    (error: unknown) => error instanceof MillraceLimited,
  )
  const waiting = limiter.wait(handle, { cost: 100_000 })
  clock.advance(1_100)
  assert.equal(
    (await waiting).rules.map(({ remaining }) => remaining),
    [150_000, 150_000, 256_000],
  )
  const never = await settled(limiter.wait(handle, { cost: 500_001, limit: { exact: 1e6 } }))
  assert.match((never as PromiseRejectedResult).reason.message, "at most the limit of 'fine', 500000")
})

test('an attached thread knows the unit of each rule', () => {
  const { limiter } = mixed()
  const attached = attachLimiter(limiter.share())
  assert.equal(attached.rules, limiter.rules)
  attached.check('key', 100_001)
  assert.equal(usages(limiter), [100_001, 101_000, 128_000])
})

test('a rule with shadow and a unit refuses nothing', () => {
  const limiter = createLimiter({
    rules: [
      { name: 'held', limit: 10, window: '1m' },
      { name: 'tried', limit: 20, unit: 10, window: '1m', shadow: true },
    ],
    maxKeys: 20,
  })
  for (let i = 0; i < 2; i++) assert.ok(limiter.check('key', 1).shadow!.allowed)
  const { allowed, shadow, rules } = limiter.check('key', 1)
  assert.equal([allowed, shadow!.allowed, rules[1]!.shadow!.allowed], [true, false, false])
  assert.ok(limiter.check('key', 7).allowed)
  assert.not(limiter.check('key', 1).allowed)
})

test.run()
