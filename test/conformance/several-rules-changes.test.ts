// run: once, also-full, also-long
// Several rules: changes of keys and limits, waits and reservations.
import { MillraceError } from 'millrace'
import * as assert from 'uvu/assert'
import { resolved } from '../limiter/support.js'
import { BURST, exhaustHourly, HOURLY, raised, TWO, timesOf, usageOf } from './several-rules.js'
import { type Claims, conform } from './suite.js'

const CLAIMS: Claims = {
  'gives back a decision in every rule, once': async (subject) => {
    const { limiter, clock } = subject
    const decision = await limiter.check('key', 3)
    const other = await limiter.check('key', 2)
    assert.equal([await limiter.refund(decision), await limiter.refund(decision)], [3, 0])
    assert.equal(await usageOf(limiter), [2, 2])
    clock.advance(timesOf(subject).burst.untilEmpty([0, 5]))
    assert.is(await limiter.refund(other), 2, 'it has left one window, and counts in the other')
    assert.equal(await usageOf(limiter), [0, 0])
    assert.ok(decision.allowed)
  },
  'gives back nothing for a decision without a charge, and refuses the part of one rule': async ({
    limiter,
  }) => {
    const decision = await limiter.check('key', 5)
    assert.is(await limiter.refund(await limiter.check('key')), 0)
    assert.is(await limiter.refund(await limiter.peek('key')), 0)
    for (const part of [decision.rules[1], decision.toJSON(), decision.toJSON().rules![0]]) {
      await raised(() => limiter.refund(part as never), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
    }
    assert.equal(await usageOf(limiter), [5, 5])
  },
  'refunds by key, penalizes and clears in every rule': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 3)
    clock.advance(timesOf(subject).burst.untilEmpty([0, 3]))
    await limiter.check('key', 1)
    assert.is(await limiter.refund('key', 2), 2, 'the most that any rule took out')
    assert.equal(await usageOf(limiter), [0, 2])
    assert.is(await limiter.penalize('key', 9), true)
    assert.equal(await usageOf(limiter), [9, 11])
    assert.not((await limiter.check('key')).allowed)
    await limiter.clear('key')
    assert.equal(await usageOf(limiter), [0, 0])
    assert.ok((await limiter.check('key', 5)).allowed)
  },
  'blocks and unblocks in every rule': async ({ limiter, clock }) => {
    assert.is(await limiter.block('key', '2s'), true)
    const { allowed, rule, rules, retryAfterMs, remaining } = await limiter.check('key')
    assert.equal([allowed, rule, remaining], [false, 'burst', 0])
    assert.equal(
      rules.map((part) => part.allowed),
      [false, false],
    )
    assert.ok(retryAfterMs >= 2_000 && retryAfterMs < 2_063, `${retryAfterMs}`)
    clock.advance(retryAfterMs)
    assert.ok((await limiter.check('key')).allowed)
    await limiter.block('key', Number.POSITIVE_INFINITY)
    assert.is((await limiter.check('key')).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal([await limiter.unblock('key'), await limiter.unblock('key')], [true, false])
    assert.ok((await limiter.check('key')).allowed)
  },
  'counts usage by any rule, over a part of its window': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 2)
    clock.advance(120_000)
    await limiter.check('key', 1)
    const { burst, hourly } = timesOf(subject)
    const charges = [
      [0, 2],
      [120_000, 1],
    ] as const
    assert.is(await limiter.usage('key'), burst.usedInLast(10_000, ...charges), 'by the first rule')
    assert.is(await limiter.usage('key', '5s'), burst.usedInLast(5_000, ...charges))
    const inHour = hourly.usedInLast(3_600_000, ...charges)
    assert.is(await limiter.usage('key', '1h', { rule: 'hourly' }), inHour)
    const inMinute = hourly.usedInLast(60_000, ...charges)
    assert.is(await limiter.usage('key', '1m', { rule: 'hourly' }), inMinute)
    const tooLong = await raised(() => limiter.usage('key', '1h'), 'ERR_MILLRACE_INVALID_DURATION', 'lastMs')
    assert.match(tooLong.expected, '10s')
    const unknown = () => limiter.usage('key', '1s', { rule: 'daily' })
    assert.match((await raised(unknown, 'ERR_MILLRACE_INVALID_RULE', 'rule')).expected, "'burst', 'hourly'")
  },
  'lists its rules, and changes the limit of each': async ({ limiter, granularityMs }) => {
    const { edge, algorithm, align } = limiter.rule
    const own = { edge, ...(algorithm !== undefined && { algorithm }), ...(align !== undefined && { align }) }
    const ofBurst = { windowMs: 10_000, granularityMs: granularityMs(10_000, 1_000) }
    const burst = { name: 'burst', limit: 5, ...ofBurst, ...own }
    const hourly = {
      name: 'hourly',
      limit: 12,
      windowMs: 3_600_000,
      granularityMs: granularityMs(3_600_000, 60_000, 12),
      ...own,
    } as const
    const rules = () => limiter.rules.map(({ maxLimit, ...rule }) => rule)
    assert.equal(rules(), [burst, hourly])
    assert.equal(limiter.rule, limiter.rules[0])
    await limiter.update('hourly', { limit: 4 })
    assert.equal(rules()[1], { ...hourly, limit: 4 })
    assert.equal(
      [(await limiter.check('key', 5)).rule, (await limiter.check('key', 4)).allowed],
      ['hourly', true],
    )
    await limiter.update('burst', { limit: 2 })
    assert.is((await limiter.check('other', 3)).rule, 'burst')
    const unknown = () => limiter.update('daily', { limit: 1 })
    assert.match((await raised(unknown, 'ERR_MILLRACE_INVALID_RULE', 'rule')).expected, "'burst', 'hourly'")
  },
  'settles a reservation in every rule': async ({ limiter, algorithm }) => {
    const reserved = await limiter.reserve('key', 4)
    assert.is(await reserved.commit(1), -3)
    assert.equal(await usageOf(limiter), [1, 1])
    await raised(() => reserved.cancel(), 'ERR_MILLRACE_SETTLED', 'reservation')
    assert.is(await (await limiter.reserve('key', 4)).commit(9), 5)
    assert.equal(await usageOf(limiter), [10, 10])
    const refused = await limiter.reserve('key', 2)
    await raised(() => refused.commit(), 'ERR_MILLRACE_NOT_RESERVED', 'reservation')
    if (!algorithm.countsInParts)
      assert.is(await (await limiter.reserve('key', 2, { limit: { burst: 20 } })).cancel(), 2)
    assert.equal(await usageOf(limiter), [10, 10])
    const refunded = await limiter.reserve('other', 2)
    await limiter.refund(refunded.decision)
    await raised(() => refunded.commit(), 'ERR_MILLRACE_SETTLED', 'reservation')
  },
  'gives back a part of a charge that has left one window': async (subject) => {
    const { limiter, clock } = subject
    const reserved = await limiter.reserve('key', 5)
    clock.advance(timesOf(subject).burst.untilEmpty([0, 5]))
    await limiter.check('key', 2)
    assert.is(await reserved.commit(1), -4)
    assert.equal(await usageOf(limiter), [2, 3])
  },
  'forgets all keys in every rule': async ({ limiter }) => {
    for (const key of ['key', 'other']) assert.ok((await limiter.check(key, 5)).allowed)
    await limiter.block('blocked', '1h')
    await limiter.clearAll()
    for (const key of ['key', 'other', 'blocked']) assert.equal(await usageOf(limiter, key), [0, 0])
    assert.ok((await limiter.check('blocked', 5)).allowed)
  },
  'a wait uses the limits of its call': async ({ limiter, clock, algorithm }) => {
    assert.ok((await limiter.check('key', 5)).allowed)
    if (algorithm.countsInParts) clock.advance(10_000)
    assert.ok((await limiter.wait('key', { cost: 2, limit: { burst: 7 } })).allowed)
    const [outcome] = await Promise.allSettled([limiter.wait('key', { cost: 3, limit: { hourly: 2 } })])
    assert.match((outcome as PromiseRejectedResult).reason.message, "at most the limit of 'hourly', 2")
  },
  'wakes a pending wait as soon as all rules have room': async (several) => {
    await exhaustHourly(several)
    const { limiter } = several
    const waiting = limiter.wait('key', { cost: 2 })
    await limiter.update('burst', { limit: 10 })
    await limiter.refund('key', 1)
    const outcome = await Promise.race([waiting, new Promise((resolve) => setImmediate(resolve))])
    assert.is(outcome, undefined)
    const limit = several.algorithm.countsInParts ? 24 : 13 // 11 of 12 are 22 of 24
    await limiter.update('hourly', { limit })
    assert.ok((await resolved(waiting)).allowed)
    assert.equal(await usageOf(limiter), [2, limit])
  },
  'an aborted wait leaves no charge in any rule': async ({ limiter }) => {
    const controller = new AbortController()
    await limiter.check('key', 5)
    const waiting = limiter.wait('key', { cost: 2, signal: controller.signal })
    await limiter.peek('key')
    await limiter.clear('key') // the pending call tries again
    controller.abort('gone')
    const [outcome] = await Promise.allSettled([waiting])
    if (outcome.status === 'rejected') assert.is(outcome.reason, 'gone')
    await limiter.peek('key')
    await limiter.peek('key')
    assert.equal(await usageOf(limiter), outcome.status === 'rejected' ? [0, 0] : [2, 2])
  },
  'rejects a wait that one rule never admits': async ({ limiter }) => {
    const [outcome] = await Promise.allSettled([limiter.wait('key', { cost: 6 })])
    const { reason } = outcome as PromiseRejectedResult
    assert.instance(reason, MillraceError)
    assert.is(reason.code, 'ERR_MILLRACE_NEVER_ADMITTED')
    assert.match(reason.message, "at most the limit of 'burst', 5")
    await limiter.block('key', Number.POSITIVE_INFINITY)
    const [blocked] = await Promise.allSettled([limiter.wait('key')])
    assert.match((blocked as PromiseRejectedResult).reason.message, 'blocked for ever')
  },
  'the statistics count each decision once, and the keys of the first rule': async (several) => {
    const { limiter, make } = several
    await exhaustHourly(several)
    for (let i = 0; i < 300; i++) await limiter.check('key')
    for (let i = 0; i < 300; i++) await limiter.check('free', 0)
    await limiter.check('key', 6)
    await limiter.peek('key')
    await limiter.checkMany(['key', 'other'])
    const { keys, allowed, denied, bytes } = await limiter.stats()
    assert.equal({ keys, allowed, denied }, { keys: 2, allowed: 304, denied: 302 })
    const sizes: number[] = []
    for (const rule of [BURST, HOURLY]) {
      sizes.push((await make({ rules: [rule], maxKeys: 20 }).stats()).bytes)
    }
    assert.is(bytes, Math.ceil(sizes[0]! / 4_096) * 4_096 + sizes[1]!)
  },
  'refuses every call once it is closed': async ({ limiter }) => {
    const decision = await limiter.check('key', 2)
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
      await raised(act, 'ERR_MILLRACE_CLOSED', 'limiter')
    }
    assert.equal([decision.rule, decision.rules.length, decision.remaining], ['burst', 2, 3])
  },
}

conform([[CLAIMS, TWO]], /the statistics count/, /over a part of its window|forgets all keys|aborted wait/)
