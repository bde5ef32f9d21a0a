// run: once
// The contract of decisions by several rules. Every test runs inline, in a shared file, and on a pool.
// Changes of keys, waits and reservations are in several-rules-changes.test.ts.
import { MillraceLimited } from 'millrace'
import * as assert from 'uvu/assert'
import { thrownBy } from './claims.js'
import {
  BURST_MS,
  type Claims,
  exhaustHourly,
  FREE_MS,
  HOURLY_MS,
  raised,
  testInAll,
  usageOf,
} from './several-rules.js'

const CLAIMS: Claims = {
  'admits if every rule admits, with the figures of each': async ({ limiter }) => {
    const decision = await limiter.check('key', 2)
    const burst = {
      rule: 'burst',
      allowed: true,
      limit: 5,
      remaining: 3,
      retryAfterMs: 0,
      resetMs: BURST_MS,
    }
    const hourly = { ...burst, rule: 'hourly', limit: 12, remaining: 10, resetMs: HOURLY_MS }
    const json = { retryAfterSeconds: 0, ...burst, rules: [burst, hourly] }
    assert.equal(decision.toJSON(), json)
    assert.equal(JSON.parse(JSON.stringify(decision)), json)
    assert.equal(await usageOf(limiter), [2, 2])
  },
  'names the first rule with the smallest part of its limit left': async (several) => {
    const { limiter, clock } = several
    assert.is((await limiter.peek('key')).rule, 'burst', 'both are free')
    await exhaustHourly(several)
    assert.is((await limiter.peek('key', 0)).rule, 'hourly')
    await limiter.clear('key')
    await limiter.penalize('key', 4)
    clock.advance(FREE_MS)
    assert.equal(
      [(await limiter.check('key', 3)).rule, (await limiter.peek('key')).remaining],
      ['burst', 2],
      '2/5 < 5/12',
    )
  },
  'refuses if the first rule refuses, and charges no rule': async ({ limiter, clock }) => {
    await limiter.check('key', 4)
    clock.advance(1_000)
    const { rules, ...refused } = (await limiter.check('key', 2)).toJSON()
    const expected = { rule: 'burst', allowed: false, limit: 5, remaining: 1 }
    const figures = { retryAfterMs: BURST_MS - 1_000, resetMs: BURST_MS - 1_000 }
    assert.equal(refused, { ...expected, ...figures, retryAfterSeconds: 10 })
    const hourly = { rule: 'hourly', allowed: true, limit: 12, remaining: 8 }
    assert.equal(rules, [
      { ...expected, ...figures },
      { ...hourly, retryAfterMs: 0, resetMs: HOURLY_MS - 1_000 },
    ])
    assert.equal(await usageOf(limiter), [4, 4])
  },
  'refuses if a later rule refuses, and the earlier rule takes its charge back': async (several) => {
    await exhaustHourly(several)
    const { limiter, clock } = several
    const passed = 3 * FREE_MS
    const refused = await limiter.check('key')
    assert.equal([refused.allowed, refused.rule, refused.limit, refused.remaining], [false, 'hourly', 12, 0])
    assert.is(refused.retryAfterMs, HOURLY_MS - passed)
    const [burst, hourly] = refused.rules
    assert.equal([burst!.allowed, burst!.remaining, burst!.retryAfterMs, burst!.resetMs], [true, 5, 0, 0])
    assert.equal([hourly!.allowed, hourly!.remaining], [false, 0])
    assert.equal(await usageOf(limiter), [0, 12])
    for (let i = 0; i < 20; i++) await limiter.check('key', 2)
    assert.equal(await usageOf(limiter), [0, 12])
    clock.advance(refused.retryAfterMs - 1)
    assert.not((await limiter.check('key')).allowed)
    clock.advance(1)
    assert.ok((await limiter.check('key')).allowed)
  },
  'retryAfterMs is the longest time of the rules that refuse': async ({ limiter, clock }) => {
    for (const [cost, ms] of [
      [4, FREE_MS],
      [4, FREE_MS],
      [3, 500],
    ] as const) {
      assert.ok((await limiter.check('key', cost)).allowed)
      clock.advance(ms)
    }
    const passed = 2 * FREE_MS + 500
    const { rule, rules, retryAfterMs } = await limiter.check('key', 3)
    assert.is(rule, 'burst', 'the first that refuses')
    assert.equal(
      rules.map(({ allowed }) => allowed),
      [false, false],
    )
    assert.is(rules[1]!.retryAfterMs, HOURLY_MS - passed)
    assert.is(retryAfterMs, HOURLY_MS - passed)
    clock.advance(retryAfterMs - 1)
    assert.not((await limiter.peek('key', 3)).allowed)
    clock.advance(1)
    assert.ok((await limiter.check('key', 3)).allowed)
  },
  'refuses a cost above one limit for ever, names that rule, and charges and inserts nothing': async (
    several,
  ) => {
    const { limiter } = several
    for (const cost of [6, 13, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      for (const refused of [await limiter.check('new', cost), await limiter.peek('new', cost)]) {
        const { allowed, rule, retryAfterMs } = refused
        assert.equal([allowed, rule, retryAfterMs], [false, 'burst', Infinity])
        assert.is(refused.rules[1]!.allowed, cost <= 12)
      }
    }
    assert.is((await limiter.stats()).keys, 0)
    await limiter.update('burst', { limit: 20 })
    await limiter.check('key', 12)
    const { rule, retryAfterMs, retryAfterSeconds } = await limiter.check('key', 13)
    assert.equal([rule, retryAfterMs, retryAfterSeconds], ['hourly', Infinity, 2_147_483], 'burst is free')
    await limiter.penalize('key', 20)
    const named = await limiter.check('key', 13)
    assert.equal([named.rule, named.rules[0]!.allowed], ['hourly', false], 'also where another is full')
    assert.is(named.toJSON().rules![1]!.retryAfterMs, Number.MAX_SAFE_INTEGER)
  },
  'allows cost 0 and inserts nothing, unless the key is blocked': async ({ limiter }) => {
    assert.ok((await limiter.check('key', 0)).allowed)
    assert.is((await limiter.stats()).keys, 0)
    await limiter.block('key', '1m')
    assert.not((await limiter.check('key', 0)).allowed)
  },
  'peeks without a charge': async (several) => {
    const { limiter } = several
    assert.ok((await limiter.peek('key', 5)).allowed)
    assert.equal([(await limiter.stats()).keys, await usageOf(limiter)], [0, [0, 0]])
    await exhaustHourly(several)
    const { allowed, rule, rules } = await limiter.peek('key')
    assert.equal([allowed, rule, rules.map((part) => part.remaining)], [false, 'hourly', [5, 0]])
  },
  'decides by limits of the call for any rules, by their names': async ({ limiter }) => {
    assert.ok((await limiter.check('key', 5)).allowed)
    assert.is((await limiter.check('key', 3, { limit: {} })).rule, 'burst')
    const own = { limit: { burst: 20 } }
    const admitted = await limiter.check('key', 3, own)
    assert.equal([admitted.allowed, admitted.rules.map(({ limit }) => limit)], [true, [20, 12]])
    assert.equal(await usageOf(limiter), [8, 8])
    const { rule, limit, remaining, retryAfterMs } = await limiter.check('key', 5, own)
    assert.equal([rule, limit, remaining, retryAfterMs], ['hourly', 12, 4, HOURLY_MS])
    assert.equal(await usageOf(limiter), [8, 8])
    const both = { limit: { hourly: 30, burst: 25 } }
    assert.is((await limiter.peek('key', 17, both)).allowed, true)
    assert.is((await limiter.peek('key', 18, both)).rule, 'burst')
    assert.is((await limiter.check(limiter.handle('key'), 26, both)).rule, 'burst', 'above its limit')
    assert.ok((await limiter.check(limiter.handle('key'), 5, both)).allowed)
    assert.is((await limiter.check('key', 1, { limit: { hourly: 13 } })).rule, 'burst')
    const thrown = await thrownBy(async () => limiter.checkOrThrow('key', 6, own))
    assert.ok(thrown instanceof MillraceLimited)
    assert.match(thrown.message, 'hourly')
    assert.equal(
      thrown.decision.rules.map(({ allowed }) => allowed),
      [true, false],
    )
    assert.ok((await limiter.checkOrThrow('key', 6, both)).allowed)
  },
  'refuses a wrong limit of the call: a number, an unknown rule, a bad value': async ({ limiter }) => {
    const wrong: [limit: unknown, option: string][] = [
      [20, 'limit'],
      [null, 'limit'],
      [{ daily: 20 }, 'limit'],
      [{ burst: 0 }, 'limit.burst'],
      [{ hourly: 2.5 }, 'limit.hourly'],
    ]
    for (const [limit, option] of wrong) {
      for (const act of [
        () => limiter.check('key', 1, { limit: limit as never }),
        () => limiter.peek('key', 1, { limit: limit as never }),
        () => limiter.reserve('key', 1, { limit: limit as never }),
      ]) {
        await raised(act, 'ERR_MILLRACE_INVALID_OPTION', option)
      }
    }
    assert.is((await limiter.stats()).keys, 0)
  },
  'accepts handles and packed keys': async (several) => {
    const { limiter } = several
    const handle = limiter.handle('key')
    for (let i = 0; i < 3; i++) assert.ok((await limiter.check(handle)).allowed)
    assert.ok((await limiter.check('key', 2)).allowed)
    assert.not((await limiter.check(handle)).allowed)
    assert.equal(await usageOf(limiter), [5, 5])
    assert.equal([...(await limiter.checkMany(limiter.pack(['key', 'other']))).allowed], [0, 1])
  },
  'decides a batch in order, all or nothing for each key': async (several) => {
    const { limiter } = several
    await limiter.update('hourly', { limit: 4 })
    const keys = ['a', 'b', 'a', 'a', 'a', 'b']
    const batch = await limiter.checkMany(keys, [3, 5, 2, 6, 1, 4], { remaining: true })
    assert.equal([...batch.allowed], [1, 0, 0, 0, 1, 1])
    assert.equal([...batch.remaining!], [1, 4, 1, 2, 0, 0], 'of the rule that decides each')
    assert.equal(
      [0, 1, 2, 3, 4].map((i) => batch.retryAfterMs(i)),
      [0, Infinity, HOURLY_MS, Infinity, 0],
    )
    assert.equal(
      [batch.retryAfterSeconds(2), batch.retryAfterSeconds(1)],
      [Math.ceil(HOURLY_MS / 1_000), 2_147_483],
    )
    assert.equal(
      [await usageOf(limiter, 'a'), await usageOf(limiter, 'b')],
      [
        [4, 4],
        [4, 4],
      ],
    )
    for (const i of [-1, 6, 0.5]) assert.throws(() => batch.retryAfterMs(i), /an index from 0 to 5/)
    assert.is((await limiter.checkMany([])).length, 0)
    const large = await limiter.checkMany(Array.from({ length: 200 }, (_, i) => `${i % 10}`))
    assert.is(large.allowed.filter(Boolean).length, 40)
  },
}

testInAll(CLAIMS)
