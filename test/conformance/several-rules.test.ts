// run: once, also-full, also-long
// Decisions by several rules.
// Changes of keys, waits and reservations are in several-rules-changes.test.ts.
import { MillraceLimited } from 'millrace'
import * as assert from 'uvu/assert'
import { EXHAUSTED, exhaustHourly, FREE_MS, raised, TWO, timesOf, usageOf } from './several-rules.js'
import { type Claims, conform, sourceIn, thrownBy } from './suite.js'

const CLAIMS: Claims = {
  'counts refusals by the rule in whose name they are, and what a rule in shadow would have refused': async ({
    make,
  }) => {
    const limiter = make({
      rules: [
        { name: 'tried', limit: 1, window: '1m', shadow: true },
        { name: 'first', limit: 4, window: '1m' },
        { name: 'second', limit: 3, window: '1m' },
      ],
      maxKeys: 20,
    })
    for (let i = 0; i < 5; i++) await limiter.check('key')
    await limiter.check('key', 4)
    const { rules, ...own } = (await limiter.stats()).own
    assert.equal([own.admitted, own.refused, own.shadowRefused, own.blocked], [3, 3, 2, 0])
    const of = (name: string) => [rules[name]!.admitted, rules[name]!.refused, rules[name]!.shadowRefused]
    assert.equal(
      [of('tried'), of('first'), of('second')],
      [
        [3, 0, 2],
        [3, 0, 0],
        [3, 3, 0],
      ],
    )
  },
  'admits if every rule admits, with the figures of each': async (subject) => {
    const { limiter } = subject
    const times = timesOf(subject)
    const decision = await limiter.check('key', 2)
    const burst = {
      rule: 'burst',
      allowed: true,
      limit: 5,
      remaining: 3,
      retryAfterMs: 0,
      resetMs: times.burst.untilEmpty([0, 2]),
    }
    const resetMs = times.hourly.untilEmpty([0, 2])
    const hourly = { ...burst, rule: 'hourly', limit: 12, remaining: 10, resetMs }
    const json = { retryAfterSeconds: 0, ...burst, ...sourceIn(subject), rules: [burst, hourly] }
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
  'leaves a rule without a limit uncounted, and is refused by one with a limit of 0': async ({ limiter }) => {
    const free = { limit: { burst: Number.POSITIVE_INFINITY } }
    for (const left of [5, 0]) {
      const { allowed, rule, remaining, rules } = await limiter.check('key', left === 5 ? 7 : 5, free)
      assert.equal([allowed, rule, remaining, rules[0]!.remaining], [true, 'hourly', left, Infinity])
    }
    assert.equal(await usageOf(limiter), [0, 12])
    const refused = await limiter.check('key', 1, free)
    assert.equal([refused.allowed, refused.rule, refused.rules[0]!.allowed], [false, 'hourly', true])
    for (const limit of [
      { hourly: 0 },
      { burst: 0, hourly: 0 },
      { burst: Number.POSITIVE_INFINITY, hourly: 0 },
    ]) {
      const { allowed, rule, retryAfterMs } = await limiter.check('other', 1, { limit })
      assert.equal([allowed, rule, retryAfterMs], [false, limit.burst === 0 ? 'burst' : 'hourly', Infinity])
    }
    const all = { limit: { burst: 'unlimited', hourly: Number.POSITIVE_INFINITY } } as const
    assert.ok((await limiter.check('other', 99, all)).allowed)
    const reserved = await limiter.reserve('other', 2, free)
    await reserved.commit(3)
    assert.equal(await usageOf(limiter, 'other'), [0, 3])
    const given = await limiter.check('other', 4, free)
    assert.is(await limiter.refund(given), 4)
    assert.equal(await usageOf(limiter, 'other'), [0, 3])
  },
  'refuses if the first rule refuses, and charges no rule': async (subject) => {
    const { limiter, clock } = subject
    const times = timesOf(subject)
    await limiter.check('key', 4)
    clock.advance(1_000)
    const { rules, ...refused } = (await limiter.check('key', 2)).toJSON()
    const expected = { rule: 'burst', allowed: false, limit: 5, remaining: 1 }
    const figures = {
      retryAfterMs: times.burst.untilFits(2, [0, 4]),
      resetMs: times.burst.untilEmpty([0, 4]),
    }
    const retryAfterSeconds = Math.ceil(figures.retryAfterMs / 1_000)
    assert.equal(refused, { ...expected, ...figures, ...sourceIn(subject), retryAfterSeconds })
    const hourly = { rule: 'hourly', allowed: true, limit: 12, remaining: 8 }
    assert.equal(rules, [
      { ...expected, ...figures },
      { ...hourly, retryAfterMs: 0, resetMs: times.hourly.untilEmpty([0, 4]) },
    ])
    assert.equal(await usageOf(limiter), [4, 4])
  },
  'refuses if a later rule refuses, and the earlier rule takes its charge back': async (several) => {
    await exhaustHourly(several)
    const { limiter, clock } = several
    const refused = await limiter.check('key')
    assert.equal([refused.allowed, refused.rule, refused.limit, refused.remaining], [false, 'hourly', 12, 0])
    assert.is(refused.retryAfterMs, timesOf(several).hourly.untilFits(1, ...EXHAUSTED))
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
  'retryAfterMs is the longest time of the rules that refuse': async (subject) => {
    const { limiter, clock } = subject
    for (const [cost, ms] of [
      [4, FREE_MS],
      [4, FREE_MS],
      [3, 500],
    ] as const) {
      assert.ok((await limiter.check('key', cost)).allowed)
      clock.advance(ms)
    }
    const { rule, rules, retryAfterMs } = await limiter.check('key', 3)
    assert.is(rule, 'burst', 'the first that refuses')
    assert.equal(
      rules.map(({ allowed }) => allowed),
      [false, false],
    )
    const longest = timesOf(subject).hourly.untilFits(3, [0, 4], [FREE_MS, 4], [2 * FREE_MS, 3])
    assert.is(rules[1]!.retryAfterMs, longest)
    assert.is(retryAfterMs, longest)
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
  'decides by limits of the call for any rules, by their names': async (subject) => {
    const { limiter, algorithm } = subject
    if (algorithm.countsInParts) return // in parts of its limits: see per-call.test.ts
    assert.ok((await limiter.check('key', 5)).allowed)
    assert.is((await limiter.check('key', 3, { limit: {} })).rule, 'burst')
    const own = { limit: { burst: 20 } }
    const admitted = await limiter.check('key', 3, own)
    assert.equal([admitted.allowed, admitted.rules.map(({ limit }) => limit)], [true, [20, 12]])
    assert.equal(await usageOf(limiter), [8, 8])
    const { rule, limit, remaining, retryAfterMs } = await limiter.check('key', 5, own)
    const untilFits = timesOf(subject).hourly.untilFits(5, [0, 8])
    assert.equal([rule, limit, remaining, retryAfterMs], ['hourly', 12, 4, untilFits])
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
      [{ burst: -1 }, 'limit.burst'],
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
    const { source } = sourceIn(several)
    await limiter.update('hourly', { limit: 4 })
    const { hourly } = timesOf(several)
    const keys = ['a', 'b', 'a', 'a', 'a', 'b']
    const batch = await limiter.checkMany(keys, [3, 5, 2, 6, 1, 4], { remaining: true })
    assert.equal([...batch.allowed], [1, 0, 0, 0, 1, 1])
    assert.equal([...batch.remaining!], [1, 4, 1, 2, 0, 0], 'of the rule that decides each')
    const [first, above, later, most, last] = [0, 1, 2, 3, 4].map((i) => batch.retryAfterMs(i))
    assert.equal([first, above, most, last], [0, Infinity, Infinity, 0])
    // The key was charged after this refusal: then the time may be too long.
    assert.ok(later! >= hourly.untilFits(2, [0, 3]) && later! <= hourly.untilEmpty([0, 4]), `${later}`)
    assert.equal(
      [batch.retryAfterSeconds(2), batch.retryAfterSeconds(1)],
      [Math.ceil(later! / 1_000), 2_147_483],
    )
    assert.equal(
      [await usageOf(limiter, 'a'), await usageOf(limiter, 'b')],
      [
        [4, 4],
        [4, 4],
      ],
    )
    for (const i of [0, 2]) assert.is(batch.source(i), source)
    for (const i of [-1, 6, 0.5]) {
      assert.throws(() => batch.retryAfterMs(i), /an index from 0 to 5/)
      assert.throws(() => batch.source(i), /an index from 0 to 5/)
    }
    assert.is((await limiter.checkMany([])).length, 0)
    const large = await limiter.checkMany(Array.from({ length: 200 }, (_, i) => `${i % 10}`))
    assert.is(large.allowed.filter(Boolean).length, 40)
  },
}

conform([[CLAIMS, TWO]], /packed keys/)
