// run: once, also-full, also-long
// Rules with the option `unit`: callers pass and read quantities, and the limiter counts whole units.
import { type MillraceError, MillraceLimited, type Size } from 'millrace'
import * as assert from 'uvu/assert'
import { resolved, settled } from '../limiter/support.js'
import { type Claims, conform, FIVE, sourceIn } from './suite.js'

/** Ten units of 64 KB in a minute. */
const TEN = { ...FIVE, limit: '640KB', unit: '64KB' } as const

const CLAIMS: Claims = {
  'a cost takes whole units, rounded up; remaining and usage are whole units, too': async ({
    limiter,
    times,
  }) => {
    const charges: [cost: number, units: number][] = [
      [0, 0],
      [1, 1],
      [63_999, 1],
      [64_000, 1],
      [64_001, 2],
      [128_000, 2],
    ]
    let used = 0
    for (const [cost, units] of charges) {
      used += units
      const decision = await limiter.check('key', cost)
      assert.ok(decision.allowed)
      assert.equal([decision.limit, decision.remaining], [640_000, 640_000 - used * 64_000], `${cost}`)
      assert.is(await limiter.usage('key'), used * 64_000, `${cost}`)
    }
    assert.is(used, 7)
    assert.is((await limiter.peek('key', 192_001)).allowed, false)
    const last = await limiter.check('key', 192_000)
    assert.equal([last.allowed, last.remaining], [true, 0])
    const refused = await limiter.check('key', 1)
    assert.equal([refused.allowed, refused.remaining, refused.rule], [false, 0, 'default'])
    assert.is(refused.retryAfterMs, times().untilFits(64_000, [0, 640_000]))
    assert.is(refused.retryAfterSeconds, Math.ceil(refused.retryAfterMs / 1_000))
  },
  'a pending wait is admitted when a refund makes room, and later by time': async ({
    limiter,
    clock,
    times,
  }) => {
    const first = await limiter.check('key', 640_000)
    const waiting = limiter.wait('key', { cost: 64_001 })
    await limiter.refund(first)
    assert.is((await resolved(waiting)).remaining, 512_000)
    const later = limiter.wait('key', { cost: 640_000 })
    await limiter.peek('key')
    clock.advance(times().untilEmpty([0, 128_000]))
    assert.is((await resolved(later)).remaining, 0)
  },
  'the default cost is 1, which takes one unit': async ({ limiter }) => {
    assert.is((await limiter.check('key')).remaining, 576_000)
    assert.is((await limiter.wait('key')).remaining, 512_000)
    assert.is((await limiter.checkMany(['key'], undefined, { remaining: true })).remaining![0], 448_000)
  },
  'refund(decision) gives back the units that were charged, once': async ({ limiter }) => {
    const decision = await limiter.check('key', 100_000)
    assert.is(await limiter.refund(decision), 128_000)
    assert.is(await limiter.refund(decision), 0)
    assert.is(await limiter.usage('key'), 0)
    assert.is(await limiter.refund(await limiter.check('key', 640_001)), 0)
    assert.is(await limiter.refund(await limiter.peek('key', 1)), 0)
  },
  'refund(key, cost) takes out the whole units in the cost': async ({ limiter }) => {
    await limiter.check('key', 320_000)
    for (const [cost, given] of [
      [63_999, 0],
      [64_000, 64_000],
      [191_999, 128_000],
      [1e15, 128_000],
      [1, 0],
    ] as const) {
      assert.is(await limiter.refund('key', cost), given, `${cost}`)
    }
    assert.is(await limiter.usage('key'), 0)
  },
  'penalize charges whole units, rounded up, also above the limit': async ({ limiter, algorithm }) => {
    const most = 64_000 * (algorithm.mostUsed?.(10) ?? 4_194_303)
    assert.ok(await limiter.penalize('key', 1))
    assert.is(await limiter.usage('key'), 64_000)
    assert.ok(await limiter.penalize('key', 1e9))
    assert.is(await limiter.usage('key'), Math.min(64_000 + 1e9, most))
    assert.ok(await limiter.penalize('other', 4_194_303 * 64_000))
    assert.is(await limiter.usage('other'), most)
  },
  'a settled reservation keeps the units that its actual cost takes': async ({ limiter }) => {
    const settlements: [cost: number, actual: number | undefined, change: number][] = [
      [100_000, undefined, 0],
      [100_000, 100_000, 0],
      [100_000, 128_000, 0],
      [100_000, 128_001, 64_000],
      [100_000, 64_001, 0],
      [100_000, 64_000, -64_000],
      [100_000, 1, -64_000],
      [100_000, 0, -128_000],
      [640_000, 1, -576_000],
      [1, 64_000, 0],
      [0, 1, 64_000],
      [0, 0, 0],
      [1, 1_000_000, 960_000],
    ]
    for (const [cost, actual, change] of settlements) {
      const reservation = await limiter.reserve('key', cost)
      assert.ok(reservation.decision.allowed)
      assert.is(await reservation.commit(actual), change, `${cost}, then ${actual}`)
      assert.is(await limiter.usage('key'), Math.ceil((actual ?? cost) / 64_000) * 64_000)
      await limiter.clear('key')
    }
    const cancelled = await limiter.reserve('key', 100_000)
    assert.is(await cancelled.cancel(), 128_000)
    assert.is(await limiter.usage('key'), 0)
    const given = await limiter.reserve('key', 100_000)
    await limiter.refund(given.decision)
    const error = (await settled((async () => given.commit(1))())) as PromiseRejectedResult
    assert.is((error.reason as MillraceError).code, 'ERR_MILLRACE_SETTLED')
  },
  'after a commit that changes no unit, refund(decision) gives back the charge': async ({ limiter }) => {
    const reservation = await limiter.reserve('key', 100_000)
    assert.is(await reservation.commit(70_000), 0)
    assert.is(await limiter.refund(reservation.decision), 128_000)
  },
  'the limit of a call is a size in whole units, rounded down': async ({ limiter }) => {
    for (const limit of ['192KB', '255.999KB', 192_000, 255_999] as const) {
      const decision = await limiter.check('key', 192_001, { limit })
      assert.equal([decision.allowed, decision.limit], [false, 192_000], `${limit}`)
      assert.is((await limiter.peek('key', 192_000, { limit })).allowed, true, `${limit}`)
    }
    const { maxLimit } = limiter.rule
    const [limit, half, part]: [Size, number, number] =
      maxLimit === undefined ? ['2GB', 1e9, 1e8] : [maxLimit, maxLimit / 2, 64_001]
    assert.ok((await limiter.check('key', half, { limit })).allowed)
    assert.ok((await limiter.wait('key', { cost: part, limit })).allowed)
    const waiting = await settled(limiter.wait('key', { cost: 192_001, limit: '255KB' }))
    assert.match((waiting as PromiseRejectedResult).reason.message, 'at most the limit, 192000')
  },
  'update accepts a size, but no other unit': async ({ limiter }) => {
    const large = limiter.rule.maxLimit ?? 10e9
    await limiter.update('default', { limit: `${large / 1_000}KB` })
    assert.equal([limiter.rule.limit, limiter.rule.unit], [large, 64_000])
    assert.is((await limiter.check('key', large)).remaining, 0)
    await limiter.update('default', { limit: 127_999 })
    assert.is((await limiter.peek('key')).limit, 64_000)
  },
  'checkMany accepts quantities, and returns them as doubles': async (subject) => {
    const { limiter, times } = subject
    const keys = Array.from({ length: 130 }, (_, i) => `key ${i % 13}`)
    const same = await limiter.checkMany(keys, 64_001, { remaining: true })
    assert.instance(same.remaining, Float64Array)
    assert.equal(
      [...same.allowed],
      keys.map((_, i) => (i < 65 ? 1 : 0)),
    )
    assert.equal(
      [...same.remaining!],
      keys.map((_, i) => Math.max(0, 512_000 - 128_000 * Math.floor(i / 13))),
    )
    assert.equal([same.retryAfterMs(0), same.retryAfterSeconds(0)], [0, 0])
    assert.is(same.source(129), sourceIn(subject).source)
    assert.is(same.retryAfterMs(129), times().untilFits(128_000, [0, 640_000]))
    await limiter.clearAll()
    const each = await limiter.checkMany(['a', 'b', 'a', 'c'], [1, 640_000, 576_001, 2 ** 45])
    assert.equal([...each.allowed], [1, 1, 0, 0])
    assert.is(each.remaining, undefined)
    assert.is(each.retryAfterMs(3), Number.POSITIVE_INFINITY)
    const packed = limiter.pack(['d', 'd'])
    assert.equal(
      [...(await limiter.checkMany(packed, new Float64Array([64_001, 1]), { remaining: true })).remaining!],
      [512_000, 448_000],
    )
  },
  'handles, block, unblock and clear work as without a unit': async ({ limiter }) => {
    const handle = limiter.handle('key')
    for (let i = 1; i <= 3; i++) assert.is((await limiter.check(handle, 1)).remaining, 640_000 - i * 64_000)
    assert.is((await limiter.check(handle, 1, { limit: '64KB' })).allowed, false)
    await limiter.block('key', '1m')
    assert.not((await limiter.check(handle, 0)).allowed)
    assert.ok(await limiter.unblock(handle))
    assert.is(await limiter.usage(handle, '1s'), 192_000)
    await limiter.clear('key')
    assert.is(await limiter.usage(handle), 0)
  },
  'checkOrThrow names the limit as a quantity': async ({ limiter }) => {
    assert.is((await limiter.checkOrThrow('key', 1)).remaining, 576_000)
    const { reason } = (await settled(
      (async () => limiter.checkOrThrow('key', 600_000))(),
    )) as PromiseRejectedResult
    assert.instance(reason, MillraceLimited)
    assert.match(reason.message, 'of 640000')
    assert.is(reason.decision.remaining, 576_000)
  },
  'the statistics count decisions and keys': async ({ limiter }) => {
    await limiter.check('a', 1e5)
    await limiter.check('b', 1e6)
    const { allowed, denied, keys } = await limiter.stats()
    assert.equal([allowed, denied, keys], [1, 1, 1])
  },
  'another limiter’s decision is refused': async ({ limiter, make }) => {
    for (const other of [make(), make(FIVE)]) {
      const decision = await other.check('key', 1)
      const { reason } = (await settled((async () => limiter.refund(decision))())) as PromiseRejectedResult
      assert.is((reason as MillraceError).code, 'ERR_MILLRACE_FOREIGN_DECISION')
    }
  },
}

const ROUNDED_DOWN: Claims = {
  'a limit is rounded down to whole units': async ({ limiter }) => {
    assert.is(limiter.rule.limit, 640_000)
    assert.is((await limiter.peek('key')).limit, 640_000)
    assert.not((await limiter.check('key', 640_001)).allowed)
    assert.ok((await limiter.check('key', 640_000)).allowed)
  },
}

const LARGE: Claims = {
  'costs far above 2^32 are charged, and a cost above the limit is refused for ever': async ({ limiter }) => {
    const { limit, unit = 1 } = limiter.rule
    assert.is((await limiter.check('key', 2 ** 52)).remaining, limit - Math.ceil(2 ** 52 / unit) * unit)
    assert.is(await limiter.usage('key'), Math.ceil(2 ** 52 / unit) * unit)
    assert.is(await limiter.refund('key', 2 ** 51), Math.floor(2 ** 51 / unit) * unit)
    for (const cost of [limit + 1, Number.MAX_SAFE_INTEGER, 2 ** 60, 1e300]) {
      const { allowed, retryAfterMs, retryAfterSeconds } = await limiter.check('key', cost)
      assert.equal([allowed, retryAfterMs, retryAfterSeconds], [false, Number.POSITIVE_INFINITY, 2_147_483])
    }
    assert.ok((await limiter.check('other', limit)).allowed)
  },
}

const COUNTING: Claims = {
  'countRefused charges refusals in whole units': async ({ limiter }) => {
    await limiter.check('key', 640_000)
    await limiter.check('key', 64_001)
    assert.is(await limiter.usage('key'), 768_000)
    const abort = new AbortController()
    const waiting = settled(limiter.wait('key', { cost: 64_001, signal: abort.signal }))
    assert.not((await limiter.peek('key')).allowed) // decided after the attempt of wait
    abort.abort()
    assert.is((await waiting).status, 'rejected')
    assert.is(await limiter.usage('key'), 768_000)
  },
}

const SHADOWED: Claims = {
  '`shadow` has the decision of the rule as if it were enforced': async ({ limiter }) => {
    assert.equal((await limiter.check('key', 640_000)).shadow, { allowed: true, retryAfterMs: 0 })
    const { allowed, shadow, remaining } = await limiter.check('key', 1)
    assert.equal([allowed, shadow!.allowed, remaining], [true, false, 0])
    assert.equal((await limiter.check('key', 1)).toJSON().shadow!.allowed, false)
    const reservation = await limiter.reserve('key', 1e6)
    assert.is(await reservation.commit(1), 0)
  },
}

/** The unit with which this limit is just below 2^53. */
const unitOf = (limit: number): number => Math.floor(8.388604e15 / limit)

conform(
  [
    [CLAIMS, TEN],
    [ROUNDED_DOWN, { ...TEN, limit: '703.999KB' }],
    [
      LARGE,
      ({ mostLimit = 4_194_302 }) => ({
        ...TEN,
        limit: mostLimit * unitOf(mostLimit),
        unit: unitOf(mostLimit),
      }),
    ],
    [COUNTING, { ...TEN, countRefused: true }],
    [SHADOWED, { ...TEN, shadow: true }],
  ],
  /checkMany accepts|count decisions and keys/,
  /handles, block/, // it reads the usage of a part of the window
)
