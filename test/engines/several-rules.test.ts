// run: once
// The contract of several rules: every test here runs in memory and in a shared file.
import { type Limiter, MillraceError } from 'millrace'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, resolved, START_MS } from '../limiter/support.js'
import { test as withAddon } from '../native/addon-test.js'
import { BURST, HOURLY, PLACES, type Several, severalIn } from './several-rules.js'

/** When a charge at the start has left the window of each rule, in milliseconds from there. */
const BURST_MS = 11_000 - (START_MS % 1_000)
const HOURLY_MS = 61 * 60_000 - (START_MS % 60_000)

/** After this long, the burst limit is free, whenever it was used. */
const FREE_MS = 11_000

/** What the key has used by each rule. */
const usageOf = (limiter: Limiter, key = 'key') =>
  limiter.rules.map(({ name }) => limiter.usage(key, undefined, { rule: name }))

/** Uses the whole hourly limit, and leaves the burst limit free. */
function exhaustHourly({ limiter, clock }: Several): void {
  for (const cost of [5, 5, 2]) {
    assert.ok(limiter.check('key', cost).allowed)
    clock.advance(FREE_MS)
  }
}

const CLAIMS: Record<string, (several: Several) => void | Promise<void>> = {
  'admits where every rule admits, with the figures of each': ({ limiter }) => {
    const decision = limiter.check('key', 2)
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
    assert.equal(usageOf(limiter), [2, 2])
  },
  'names the rule with the smallest part of its limit left, or the first of those': async (several) => {
    const { limiter, clock } = several
    assert.is(limiter.peek('key').rule, 'burst', 'both are free')
    exhaustHourly(several)
    assert.is(limiter.peek('key', 0).rule, 'hourly')
    limiter.clear('key')
    limiter.penalize('key', 4)
    clock.advance(FREE_MS)
    assert.equal([limiter.check('key', 3).rule, limiter.peek('key').remaining], ['burst', 2], '2/5 < 5/12')
  },
  'refuses where the first rule refuses, and charges none': ({ limiter, clock }) => {
    limiter.check('key', 4)
    clock.advance(1_000)
    const { rules, ...refused } = limiter.check('key', 2).toJSON()
    const expected = { rule: 'burst', allowed: false, limit: 5, remaining: 1 }
    const figures = { retryAfterMs: BURST_MS - 1_000, resetMs: BURST_MS - 1_000 }
    assert.equal(refused, { ...expected, ...figures, retryAfterSeconds: 10 })
    const hourly = { rule: 'hourly', allowed: true, limit: 12, remaining: 8 }
    assert.equal(rules, [
      { ...expected, ...figures },
      { ...hourly, retryAfterMs: 0, resetMs: HOURLY_MS - 1_000 },
    ])
    assert.equal(usageOf(limiter), [4, 4])
  },
  'refuses where a later rule refuses, and the earlier one has its charge back': (several) => {
    exhaustHourly(several)
    const { limiter, clock } = several
    const passed = 3 * FREE_MS
    const refused = limiter.check('key')
    assert.equal([refused.allowed, refused.rule, refused.limit, refused.remaining], [false, 'hourly', 12, 0])
    assert.is(refused.retryAfterMs, HOURLY_MS - passed)
    const [burst, hourly] = refused.rules
    assert.equal([burst!.allowed, burst!.remaining, burst!.retryAfterMs, burst!.resetMs], [true, 5, 0, 0])
    assert.equal([hourly!.allowed, hourly!.remaining], [false, 0])
    assert.equal(usageOf(limiter), [0, 12])
    for (let i = 0; i < 20; i++) limiter.check('key', 2)
    assert.equal(usageOf(limiter), [0, 12])
    clock.advance(refused.retryAfterMs - 1)
    assert.not(limiter.check('key').allowed)
    clock.advance(1)
    assert.ok(limiter.check('key').allowed)
  },
  'waits for the last of the rules that refuse': ({ limiter, clock }) => {
    for (const [cost, ms] of [
      [4, FREE_MS],
      [4, FREE_MS],
      [3, 500],
    ] as const) {
      assert.ok(limiter.check('key', cost).allowed)
      clock.advance(ms)
    }
    const passed = 2 * FREE_MS + 500
    const { rule, rules, retryAfterMs } = limiter.check('key', 3)
    assert.is(rule, 'burst', 'the first that refuses')
    assert.equal(
      rules.map(({ allowed }) => allowed),
      [false, false],
    )
    assert.is(rules[1]!.retryAfterMs, HOURLY_MS - passed)
    assert.is(retryAfterMs, HOURLY_MS - passed)
    clock.advance(retryAfterMs - 1)
    assert.not(limiter.peek('key', 3).allowed)
    clock.advance(1)
    assert.ok(limiter.check('key', 3).allowed)
  },
  'refuses a cost above one limit for ever, names that rule, and charges and inserts nothing': (several) => {
    const { limiter } = several
    for (const cost of [6, 13, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      for (const refused of [limiter.check('new', cost), limiter.peek('new', cost)]) {
        const { allowed, rule, retryAfterMs } = refused
        assert.equal([allowed, rule, retryAfterMs], [false, 'burst', Infinity])
        assert.is(refused.rules[1]!.allowed, cost <= 12)
      }
    }
    assert.is(limiter.stats().keys, 0)
    limiter.update('burst', { limit: 20 })
    limiter.check('key', 12)
    const { rule, retryAfterMs, retryAfterSeconds } = limiter.check('key', 13)
    assert.equal([rule, retryAfterMs, retryAfterSeconds], ['hourly', Infinity, 2_147_483], 'burst is free')
    limiter.penalize('key', 20)
    const named = limiter.check('key', 13)
    assert.equal([named.rule, named.rules[0]!.allowed], ['hourly', false], 'also where another is full')
    assert.is(named.toJSON().rules![1]!.retryAfterMs, Number.MAX_SAFE_INTEGER)
  },
  'allows cost 0 and inserts nothing, unless the key is blocked': ({ limiter }) => {
    assert.ok(limiter.check('key', 0).allowed)
    assert.is(limiter.stats().keys, 0)
    limiter.block('key', '1m')
    assert.not(limiter.check('key', 0).allowed)
  },
  'peeks without a charge': (several) => {
    const { limiter } = several
    assert.ok(limiter.peek('key', 5).allowed)
    assert.equal([limiter.stats().keys, usageOf(limiter)], [0, [0, 0]])
    exhaustHourly(several)
    const { allowed, rule, rules } = limiter.peek('key')
    assert.equal([allowed, rule, rules.map((part) => part.remaining)], [false, 'hourly', [5, 0]])
  },
  'gives back a decision in every rule, once': ({ limiter, clock }) => {
    const decision = limiter.check('key', 3)
    const other = limiter.check('key', 2)
    assert.equal([limiter.refund(decision), limiter.refund(decision)], [3, 0])
    assert.equal(usageOf(limiter), [2, 2])
    clock.advance(BURST_MS)
    assert.is(limiter.refund(other), 2, 'it has left one window, and counts in the other')
    assert.equal(usageOf(limiter), [0, 0])
    assert.ok(decision.allowed)
  },
  'gives back nothing for a decision without a charge, nor for the part of one rule': ({ limiter }) => {
    const decision = limiter.check('key', 5)
    assert.is(limiter.refund(limiter.check('key')), 0)
    assert.is(limiter.refund(limiter.peek('key')), 0)
    for (const part of [decision.rules[1], decision.toJSON(), decision.toJSON().rules![0]]) {
      assertRaises(() => limiter.refund(part as never), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
    }
    assert.equal(usageOf(limiter), [5, 5])
  },
  'refunds by key, penalizes and clears in every rule': ({ limiter, clock }) => {
    limiter.check('key', 3)
    clock.advance(BURST_MS)
    limiter.check('key', 1)
    assert.is(limiter.refund('key', 2), 2, 'the most that any rule took out')
    assert.equal(usageOf(limiter), [0, 2])
    assert.is(limiter.penalize('key', 9), true)
    assert.equal(usageOf(limiter), [9, 11])
    assert.not(limiter.check('key').allowed)
    limiter.clear('key')
    assert.equal(usageOf(limiter), [0, 0])
    assert.ok(limiter.check('key', 5).allowed)
  },
  'blocks and unblocks in every rule': ({ limiter, clock }) => {
    assert.is(limiter.block('key', '2s'), true)
    const { allowed, rule, rules, retryAfterMs, remaining } = limiter.check('key')
    assert.equal([allowed, rule, remaining], [false, 'burst', 0])
    assert.equal(
      rules.map((part) => part.allowed),
      [false, false],
    )
    assert.ok(retryAfterMs >= 2_000 && retryAfterMs < 2_063, `${retryAfterMs}`)
    clock.advance(retryAfterMs)
    assert.ok(limiter.check('key').allowed)
    limiter.block('key', Number.POSITIVE_INFINITY)
    assert.is(limiter.check('key').retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal([limiter.unblock('key'), limiter.unblock('key')], [true, false])
    assert.ok(limiter.check('key').allowed)
  },
  'counts usage by any rule, over a part of its window': ({ limiter, clock }) => {
    limiter.check('key', 2)
    clock.advance(120_000)
    limiter.check('key', 1)
    assert.is(limiter.usage('key'), 1, 'by the first rule')
    assert.is(limiter.usage('key', '5s'), 1)
    assert.is(limiter.usage('key', '1h', { rule: 'hourly' }), 3)
    assert.is(limiter.usage('key', '1m', { rule: 'hourly' }), 1)
    const tooLong = assertRaises(() => limiter.usage('key', '1h'), 'ERR_MILLRACE_INVALID_DURATION', 'lastMs')
    assert.match(tooLong.expected, '10s')
    const unknown = () => limiter.usage('key', '1s', { rule: 'daily' })
    assert.match(assertRaises(unknown, 'ERR_MILLRACE_INVALID_RULE', 'rule').expected, "'burst', 'hourly'")
  },
  'lists its rules, and changes the limit of any': ({ limiter }) => {
    const burst = { name: 'burst', limit: 5, windowMs: 10_000, granularityMs: 1_000, edge: 'strict' }
    const hourly = {
      name: 'hourly',
      limit: 12,
      windowMs: 3_600_000,
      granularityMs: 60_000,
      edge: 'strict',
    } as const
    assert.equal(limiter.rules, [burst, hourly])
    assert.equal(limiter.rule, burst)
    limiter.update('hourly', { limit: 4 })
    assert.equal(limiter.rules[1], { ...hourly, limit: 4 })
    assert.equal([limiter.check('key', 5).rule, limiter.check('key', 4).allowed], ['hourly', true])
    limiter.update('burst', { limit: 2 })
    assert.is(limiter.check('other', 3).rule, 'burst')
    const unknown = () => limiter.update('daily', { limit: 1 })
    assert.match(assertRaises(unknown, 'ERR_MILLRACE_INVALID_RULE', 'rule').expected, "'burst', 'hourly'")
  },
  'decides by limits of the call, of any rules by their names': ({ limiter }) => {
    assert.ok(limiter.check('key', 5).allowed)
    assert.is(limiter.check('key', 3, { limit: {} }).rule, 'burst')
    const own = { limit: { burst: 20 } }
    const admitted = limiter.check('key', 3, own)
    assert.equal([admitted.allowed, admitted.rules.map(({ limit }) => limit)], [true, [20, 12]])
    assert.equal(usageOf(limiter), [8, 8])
    const { rule, limit, remaining, retryAfterMs } = limiter.check('key', 5, own)
    assert.equal([rule, limit, remaining, retryAfterMs], ['hourly', 12, 4, HOURLY_MS])
    assert.equal(usageOf(limiter), [8, 8])
    const both = { limit: { hourly: 30, burst: 25 } }
    assert.is(limiter.peek('key', 17, both).allowed, true)
    assert.is(limiter.peek('key', 18, both).rule, 'burst')
    assert.is(limiter.check(limiter.handle('key'), 26, both).rule, 'burst', 'above its limit')
    assert.ok(limiter.check(limiter.handle('key'), 5, both).allowed)
    assert.is(limiter.check('key', 1, { limit: { hourly: 13 } }).rule, 'burst')
    assert.throws(() => limiter.checkOrThrow('key', 6, own), /hourly/)
    assert.ok(limiter.checkOrThrow('key', 6, both).allowed)
  },
  'refuses a limit of the call that names no rule, and a bare number': ({ limiter }) => {
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
        assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', option, `${act}`)
      }
    }
    assert.is(limiter.stats().keys, 0)
  },
  'settles a reservation in every rule': ({ limiter }) => {
    const reserved = limiter.reserve('key', 4)
    assert.is(reserved.commit(1), -3)
    assert.equal(usageOf(limiter), [1, 1])
    assertRaises(() => reserved.cancel(), 'ERR_MILLRACE_SETTLED', 'reservation')
    assert.is(limiter.reserve('key', 4).commit(9), 5)
    assert.equal(usageOf(limiter), [10, 10])
    const refused = limiter.reserve('key', 2)
    assertRaises(() => refused.commit(), 'ERR_MILLRACE_NOT_RESERVED', 'reservation')
    assert.is(limiter.reserve('key', 2, { limit: { burst: 20 } }).cancel(), 2)
    assert.equal(usageOf(limiter), [10, 10])
    const refunded = limiter.reserve('other', 2)
    limiter.refund(refunded.decision)
    assertRaises(() => refunded.commit(), 'ERR_MILLRACE_SETTLED', 'reservation')
  },
  'forgets all keys in every rule': ({ limiter }) => {
    for (const key of ['key', 'other']) assert.ok(limiter.check(key, 5).allowed)
    limiter.block('blocked', '1h')
    limiter.clearAll()
    for (const key of ['key', 'other', 'blocked']) assert.equal(usageOf(limiter, key), [0, 0])
    assert.ok(limiter.check('blocked', 5).allowed)
  },
  'waits by limits of the call': async ({ limiter }) => {
    assert.ok(limiter.check('key', 5).allowed)
    assert.ok((await limiter.wait('key', { cost: 2, limit: { burst: 7 } })).allowed)
    const [outcome] = await Promise.allSettled([limiter.wait('key', { cost: 3, limit: { hourly: 2 } })])
    assert.match((outcome as PromiseRejectedResult).reason.message, "at most the limit of 'hourly', 2")
  },
  'accepts handles and packed keys': (several) => {
    const { limiter } = several
    const handle = limiter.handle('key')
    for (let i = 0; i < 3; i++) assert.ok(limiter.check(handle).allowed)
    assert.ok(limiter.check('key', 2).allowed)
    assert.not(limiter.check(handle).allowed)
    assert.equal(usageOf(limiter), [5, 5])
    assert.equal([...limiter.checkMany(limiter.pack(['key', 'other'])).allowed], [0, 1])
  },
  'decides a batch in order, all or nothing for each key': (several) => {
    const { limiter } = several
    limiter.update('hourly', { limit: 4 })
    const keys = ['a', 'b', 'a', 'a', 'a', 'b']
    const batch = limiter.checkMany(keys, [3, 5, 2, 6, 1, 4], { remaining: true })
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
      [usageOf(limiter, 'a'), usageOf(limiter, 'b')],
      [
        [4, 4],
        [4, 4],
      ],
    )
    for (const i of [-1, 6, 0.5]) assert.throws(() => batch.retryAfterMs(i), /an index from 0 to 5/)
    assert.is(limiter.checkMany([]).length, 0)
    const large = limiter.checkMany(Array.from({ length: 200 }, (_, i) => `${i % 10}`))
    assert.is(large.allowed.filter(Boolean).length, 40)
  },
  'wakes a pending wait as soon as all rules have room': async (several) => {
    exhaustHourly(several)
    const { limiter } = several
    const waiting = limiter.wait('key', { cost: 2 })
    limiter.update('burst', { limit: 50 })
    limiter.refund('key', 1)
    const outcome = await Promise.race([waiting, new Promise((resolve) => setImmediate(resolve))])
    assert.is(outcome, undefined)
    limiter.update('hourly', { limit: 13 })
    assert.ok((await resolved(waiting)).allowed)
    assert.equal(usageOf(limiter), [2, 13])
  },
  'rejects a wait that one rule never admits': async ({ limiter }) => {
    const [outcome] = await Promise.allSettled([limiter.wait('key', { cost: 6 })])
    const { reason } = outcome as PromiseRejectedResult
    assert.instance(reason, MillraceError)
    assert.is(reason.code, 'ERR_MILLRACE_NEVER_ADMITTED')
    assert.match(reason.message, "at most the limit of 'burst', 5")
    limiter.block('key', Number.POSITIVE_INFINITY)
    const [blocked] = await Promise.allSettled([limiter.wait('key')])
    assert.match((blocked as PromiseRejectedResult).reason.message, 'blocked for ever')
  },
  'counts each decision once, and the keys of the first rule': (several) => {
    const { limiter } = several
    exhaustHourly(several)
    for (let i = 0; i < 300; i++) limiter.check('key')
    for (let i = 0; i < 300; i++) limiter.check('free', 0)
    limiter.check('key', 6)
    limiter.peek('key')
    limiter.checkMany(['key', 'other'])
    const { keys, allowed, denied, bytes } = limiter.stats()
    assert.equal({ keys, allowed, denied }, { keys: 2, allowed: 304, denied: 302 })
    const sizes = [BURST, HOURLY].map((rule) => severalIn('memory', { rules: [rule] }).limiter.stats().bytes)
    assert.is(bytes, Math.ceil(sizes[0]! / 4_096) * 4_096 + sizes[1]!)
  },
  'refuses every call once it is closed': async ({ limiter }) => {
    const decision = limiter.check('key', 2)
    await limiter.close()
    await limiter.close()
    for (const act of [
      () => limiter.check('key'),
      () => limiter.peek('key'),
      () => limiter.checkMany(['key']),
      () => limiter.usage('key', '1s', { rule: 'hourly' }),
      () => limiter.refund('key', 1),
      () => limiter.rules,
      () => limiter.rule,
      () => limiter.stats(),
      () => limiter.update('hourly', { limit: 1 }),
      () => limiter.share(),
    ]) {
      assertRaises(act, 'ERR_MILLRACE_CLOSED', 'limiter', `${act}`)
    }
    assert.equal([decision.rule, decision.rules.length, decision.remaining], ['burst', 2, 3])
  },
}

for (const [claim, verify] of Object.entries(CLAIMS)) {
  for (const place of PLACES) {
    const test = place === 'file' ? withAddon : any
    test(`${place}: ${claim}`, async () => {
      const several = severalIn(place)
      await verify(several)
      await several.limiter.close()
    })
  }
}

any.run()
