// run: once, also-full, also-long
// Several rules, some of them with the option `unit`: each rule counts the same cost in its own units.
import { type Decision, MillraceLimited } from 'millrace'
import * as assert from 'uvu/assert'
import { settled } from '../limiter/support.js'
import { raised, usageOf } from './several-rules.js'
import { type Claims, conform, isServer, type Subject, thrownBy } from './suite.js'

/** 250,000 in a second, 500 units of 1 KB in a minute, and 10 units of 64 KB in an hour. */
const MIXED = {
  rules: [
    { name: 'exact', limit: 250_000, window: '1s' },
    { name: 'fine', limit: '500KB', unit: '1KB', window: '1m' },
    { name: 'coarse', limit: '640KB', unit: '64KB', window: '1h' },
  ],
} as const

const partsOf = ({ rules }: Decision) =>
  rules.map(({ allowed, limit, remaining }) => [allowed, limit, remaining])

/** What each rule counts of these charges, each a cost after so many milliseconds. */
const usedBy = (
  { limiter, times }: Subject,
  charges: readonly (readonly [afterMs: number, cost: number])[],
) =>
  limiter.rules.map(({ limit, unit = 1, ...rule }) => {
    const inUnits = charges.map(([afterMs, cost]) => [afterMs, Math.ceil(cost / unit)] as const)
    return unit * times({ ...rule, limit: limit / unit }).used(...inUnits)
  })

const leftOf = ({ rules }: Decision) => rules.map(({ remaining }) => remaining)

const CLAIMS: Claims = {
  'each rule charges one cost in its own units, and has its own figures': async ({ place, limiter }) => {
    assert.equal(
      limiter.rules.map(({ limit, unit }) => [limit, unit]),
      [
        [250_000, undefined],
        [500_000, 1_000],
        [640_000, 64_000],
      ],
    )
    const decision = await limiter.check('key', 100_001)
    assert.equal(partsOf(decision), [
      [true, 250_000, 149_999],
      [true, 500_000, 399_000],
      [true, 640_000, 512_000],
    ])
    assert.equal([decision.rule, decision.limit, decision.remaining], ['exact', 250_000, 149_999])
    assert.equal(await usageOf(limiter), [100_001, 101_000, 128_000])
    assert.equal(
      decision.toJSON().rules!.map(({ remaining }) => remaining),
      [149_999, 399_000, 512_000],
    )
    const { allowed, denied, keys } = await limiter.stats()
    assert.equal([allowed, denied, keys], [1, 0, isServer(place) ? 0 : 1])
  },

  'an admission names the rule with the smallest part left, also if the units differ': async (subject) => {
    const { limiter, clock, times } = subject
    for (let i = 0; i < 9; i++) {
      assert.ok((await limiter.check('key', 1)).allowed)
      clock.advance(1_100)
    }
    const last = await limiter.check('key', 1)
    assert.equal([last.allowed, last.rule, last.remaining], [true, 'coarse', 0])
    const refused = await limiter.check('key', 1)
    assert.equal([refused.allowed, refused.rule], [false, 'coarse'])
    const charges = Array.from({ length: 10 }, (_, i) => [1_100 * i, 1] as const)
    const { limit, unit, ...coarse } = limiter.rules[2]!
    assert.is(refused.retryAfterMs, times({ ...coarse, limit: limit / unit! }).untilFits(1, ...charges))
    assert.equal(await usageOf(limiter), usedBy(subject, charges))
  },

  'if a rule refuses, the others take back exactly their units': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 200_000)
    const before = await usageOf(limiter)
    const refused = await limiter.check('key', 100_000)
    assert.equal([refused.allowed, refused.rule], [false, 'exact'])
    assert.equal(partsOf(refused), [
      [false, 250_000, 50_000],
      [true, 500_000, 300_000],
      [true, 640_000, 384_000],
    ])
    assert.equal(await usageOf(limiter), before)
    for (let i = 0; i < 4; i++, clock.advance(2_100)) await limiter.check('other', 120_000)
    const later = await limiter.check('other', 120_000) // 480 of 500 fine units are used
    assert.equal([later.allowed, later.rule], [false, 'fine'])
    const charges = [0, 2_100, 4_200, 6_300].map((afterMs) => [afterMs, 120_000] as const)
    assert.equal(await usageOf(limiter, 'other'), usedBy(subject, charges))
  },

  'a cost above one rule’s limit is refused by that rule, and nothing is charged': async ({
    limiter,
    algorithm,
  }) => {
    for (const cost of [250_001, 2 ** 31, 2 ** 45, Number.MAX_SAFE_INTEGER, 1e300]) {
      const refused = await limiter.check('key', cost)
      assert.equal([refused.rule, refused.retryAfterMs], ['exact', Number.POSITIVE_INFINITY], `${cost}`)
      assert.equal(
        refused.rules.map(({ allowed }) => allowed),
        cost > 640_000 ? [false, false, false] : [false, true, true],
      )
    }
    if (algorithm.mostLimit !== undefined && algorithm.mostLimit < 600_000) return
    const within = await limiter.check('key', 550_000, { limit: { exact: 600_000 } })
    assert.equal(
      [within.rule, within.limit, within.retryAfterMs],
      ['fine', 500_000, Number.POSITIVE_INFINITY],
    )
    assert.equal(await usageOf(limiter), [0, 0, 0])
    assert.is((await limiter.stats()).keys, 0)
  },

  'limits of a call and of update are sizes for rules with a unit, and integers for others': async ({
    limiter,
  }) => {
    const decision = await limiter.peek('key', 1, { limit: { exact: 7, fine: '2.999KB', coarse: 200_000 } })
    assert.equal(
      decision.rules.map(({ limit }) => limit),
      [7, 2_000, 192_000],
    )
    const within = await limiter.check('key', 64_001, { limit: { coarse: '128KB' } })
    assert.equal([within.allowed, within.rule, within.limit], [true, 'coarse', 128_000])
    await raised(
      () => limiter.check('key', 1, { limit: { exact: '7KB' } }),
      'ERR_MILLRACE_INVALID_OPTION',
      'limit.exact',
    )
    await raised(
      () => limiter.check('key', 1, { limit: { coarse: 63_999 } }),
      'ERR_MILLRACE_INVALID_OPTION',
      'limit.coarse',
    )
    await raised(() => limiter.update('exact', { limit: '5KB' }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
    await limiter.update('coarse', { limit: '1.28GB' })
    assert.equal(
      limiter.rules.map(({ limit }) => limit),
      [250_000, 500_000, 1_280_000_000],
    )
    assert.is((await limiter.peek('key', 1)).rules[2]!.limit, 1_280_000_000)
  },

  'refunds and penalties act on each rule in its units, and return the largest quantity': async ({
    limiter,
  }) => {
    const decision = await limiter.check('key', 100_001)
    assert.is(await limiter.refund(decision), 128_000)
    assert.is(await limiter.refund(decision), 0)
    assert.equal(await usageOf(limiter), [0, 0, 0])
    await limiter.check('key', 200_000)
    assert.is(await limiter.refund('key', 1_500), 1_500)
    assert.equal(await usageOf(limiter), [198_500, 199_000, 256_000])
    assert.is(await limiter.refund('key', 130_000), 130_000)
    assert.equal(await usageOf(limiter), [68_500, 69_000, 128_000])
    assert.ok(await limiter.penalize('key', 1))
    assert.equal(await usageOf(limiter), [68_501, 70_000, 192_000])
    assert.is(await limiter.refund('key', 2 ** 50), 192_000)
    const most = 4_194_303 // the rule without a unit counts no more in a bucket
    const { expected } = await raised(
      () => limiter.penalize('key', most + 1),
      'ERR_MILLRACE_INVALID_COST',
      'cost',
    )
    assert.match(expected, `${most}`)
  },

  'a settled reservation keeps, in each rule, the units that its actual cost takes': async ({ limiter }) => {
    const settlements: [cost: number, actual: number, change: number, used: number[]][] = [
      [100_000, 70_000, -30_000, [70_000, 70_000, 128_000]],
      [100_000, 63_999, -64_000, [63_999, 64_000, 64_000]],
      [100_000, 0, -128_000, [0, 0, 0]],
      [100_000, 100_000, 0, [100_000, 100_000, 128_000]],
      [100_000, 100_001, 1_000, [100_001, 101_000, 128_000]],
      [100_000, 300_000, 200_000, [300_000, 300_000, 320_000]],
      [0, 64_001, 128_000, [64_001, 65_000, 128_000]],
    ]
    for (const [cost, actual, change, used] of settlements) {
      const reservation = await limiter.reserve('key', cost)
      assert.is(await reservation.commit(actual), change, `${cost}, then ${actual}`)
      assert.equal(await usageOf(limiter), used, `${cost}, then ${actual}`)
      await limiter.clear('key')
    }
    const cancelled = await limiter.reserve('key', 100_001)
    assert.is(await cancelled.cancel(), 128_000)
    assert.equal(await usageOf(limiter), [0, 0, 0])
    await raised(() => cancelled.commit(), 'ERR_MILLRACE_SETTLED', 'reservation')
  },

  'checkMany decides by all rules, and returns quantities as doubles': async ({ limiter }) => {
    const keys = ['key', 'key', 'other', 'key']
    const batch = await limiter.checkMany(keys, [1, 200_000, 500_000, 60_000], { remaining: true })
    assert.equal([...batch.allowed], [1, 1, 0, 0])
    assert.instance(batch.remaining, Float64Array)
    assert.equal([...batch.remaining!], [576_000, 49_999, 250_000, 49_999])
    assert.is(batch.retryAfterMs(2), Number.POSITIVE_INFINITY)
    assert.ok(batch.retryAfterMs(3) > 0 && batch.retryAfterSeconds(3) <= 3_700)
    const many = Array.from({ length: 700 }, (_, i) => `key ${i % 10}`)
    const same = await limiter.checkMany(many, 64_001, { remaining: true })
    const admitted = many.map((_, i) => (i < 30 ? 1 : 0)) // three of each key: 3 * 64,001 of 250,000
    assert.equal([...same.allowed], admitted)
    assert.equal(
      [...same.remaining!.slice(0, 30)],
      Array.from({ length: 30 }, (_, i) => [185_999, 121_998, 57_997][Math.floor(i / 10)]),
    )
    assert.equal([...(await limiter.checkMany(many, 2 ** 40)).allowed], new Array(700).fill(0))
  },

  'wait, checkOrThrow and handles decide by all rules': async (subject) => {
    const { limiter, clock, algorithm } = subject
    const handle = limiter.handle('key')
    const first = await limiter.check(handle, 250_000)
    assert.instance(await thrownBy(async () => limiter.checkOrThrow(handle, 1)), MillraceLimited)
    const waiting = limiter.wait(handle, { cost: 100_000 })
    await limiter.refund(first)
    assert.equal(leftOf(await waiting), [150_000, 400_000, 512_000])
    clock.advance(1_100)
    if (algorithm.mostLimit !== undefined && algorithm.mostLimit < 1_000_000) return
    const never = await settled(limiter.wait(handle, { cost: 500_001, limit: { exact: 1_000_000 } }))
    assert.match((never as PromiseRejectedResult).reason.message, "at most the limit of 'fine', 500000")
  },
}

conform([
  [CLAIMS, ({ mostLimit = 4_194_302 }) => (mostLimit < 250_000 ? undefined : { ...MIXED, maxKeys: 20 })],
])
