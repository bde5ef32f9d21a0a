// run: once, also-full, also-long
// A limiter of one rule. Limits of one call and reservations are in per-call.test.ts.

import type { ErrorCode } from 'millrace'
import * as assert from 'uvu/assert'
import { resolved, turn, until } from '../limiter/support.js'
import { type Claims, codeOf, conform, FIVE, sourceIn } from './suite.js'

/** No limits of a call. */
const BAD_LIMITS = [-1, 0.5, Number.NaN, 4_194_303, '5', null, 5n]

const CLAIMS: Claims = {
  'admits up to the limit, then refuses, with all figures': async (subject) => {
    const { limiter, times } = subject
    for (let left = 4; left >= 0; left--) {
      const decision = await limiter.check('key')
      const fields = {
        allowed: true,
        limit: 5,
        remaining: left,
        retryAfterMs: 0,
        retryAfterSeconds: 0,
        resetMs: times().untilEmpty([0, 5 - left]),
        rule: 'default',
        ...sourceIn(subject),
      }
      assert.equal(decision.toJSON(), fields)
    }
    const retryAfterMs = times().untilFits(1, [0, 5])
    const refused = {
      allowed: false,
      limit: 5,
      remaining: 0,
      retryAfterMs,
      retryAfterSeconds: Math.ceil(retryAfterMs / 1000),
      resetMs: times().untilEmpty([0, 5]),
      rule: 'default',
      ...sourceIn(subject),
    }
    assert.equal((await limiter.check('key')).toJSON(), refused)
  },
  'refuses a cost above the limit for ever, also one above 2^31': async ({ limiter }) => {
    for (const cost of [6, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      const { allowed, retryAfterMs, remaining } = await limiter.check('key', cost)
      assert.equal(
        { allowed, retryAfterMs, remaining },
        { allowed: false, retryAfterMs: Infinity, remaining: 5 },
      )
    }
    assert.is((await limiter.stats()).keys, 0)
  },
  'counts what it has decided itself by what came of it, apart from what all have decided': async ({
    limiter,
  }) => {
    for (let i = 0; i < 7; i++) await limiter.check('key')
    await limiter.block('blocked', '1h')
    await limiter.check('blocked', 1)
    await limiter.check('blocked', 0)
    await limiter.checkMany(['key', 'other', 'blocked'])
    await limiter.peek('key')
    const { own, shared, allowed, denied } = await limiter.stats()
    const { admitted, refused, shadowRefused, blocked, rules } = own
    assert.equal([admitted, refused, shadowRefused, blocked], [6, 6, 0, 3])
    assert.equal([rules.default!.admitted, rules.default!.refused, rules.default!.blocked], [6, 6, 3])
    assert.equal([allowed, denied], [6, 6])
    if (shared !== undefined) assert.equal(shared, { admitted: 6, refused: 6, shadowRefused: 0 })
  },
  'is ready without a decision, for any number of calls of ready': async ({ limiter }) => {
    await Promise.all([limiter.ready(), limiter.ready()])
    const { allowed, denied, keys } = await limiter.stats()
    assert.equal([allowed, denied, keys], [0, 0, 0])
    await limiter.ready()
    assert.is((await limiter.check('key')).remaining, 4)
  },
  'allows cost 0 and does not insert the key': async ({ limiter }) => {
    const { allowed, remaining, resetMs } = await limiter.check('key', 0)
    assert.equal({ allowed, remaining, resetMs }, { allowed: true, remaining: 5, resetMs: 0 })
    assert.is((await limiter.stats()).keys, 0)
  },
  'peeks without a charge': async ({ limiter }) => {
    await limiter.check('key', 3)
    assert.equal((await limiter.peek('key', 3)).toJSON().allowed, false)
    assert.equal((await limiter.peek('key', 2)).toJSON().allowed, true)
    assert.is(await limiter.usage('key'), 3)
  },
  'gives the time when a refused cost fits, to the millisecond': async ({ limiter, clock, times }) => {
    await limiter.check('key', 2)
    clock.advance(10_000)
    await limiter.check('key', 3)
    const charges = [
      [0, 2],
      [10_000, 3],
    ] as const
    for (const cost of [1, 2, 3, 4, 5]) {
      const { retryAfterMs } = await limiter.check('key', cost)
      assert.is(retryAfterMs, times().untilFits(cost, ...charges), `${cost}`)
    }
    const { retryAfterMs, resetMs } = await limiter.check('key', 2)
    assert.is(resetMs, times().untilEmpty(...charges))
    clock.advance(retryAfterMs - 1)
    assert.not((await limiter.check('key', 2)).allowed)
    clock.advance(1)
    assert.ok((await limiter.check('key', 2)).allowed)
  },
  'gives back a decision, once': async ({ limiter }) => {
    const decision = await limiter.check('key', 3)
    assert.is(await limiter.refund(decision), 3)
    assert.is(await limiter.refund(decision), 0)
    assert.is(await limiter.usage('key'), 0)
    assert.ok(decision.allowed)
  },
  'gives back nothing for a decision without a charge': async ({ limiter }) => {
    await limiter.check('key', 5)
    assert.is(await limiter.refund(await limiter.check('key')), 0)
    assert.is(await limiter.refund(await limiter.peek('other')), 0)
    assert.is(await limiter.usage('key'), 5)
  },
  'refunds by key, penalizes, and clears': async ({ limiter }) => {
    await limiter.check('key', 3)
    assert.is(await limiter.refund('key', 2), 2)
    assert.is(await limiter.refund('key', 2), 1)
    assert.is(await limiter.penalize('key', 9), true)
    assert.is(await limiter.usage('key'), 9)
    assert.not((await limiter.check('key')).allowed)
    await limiter.clear('key')
    assert.is(await limiter.usage('key'), 0)
    assert.ok((await limiter.check('key', 5)).allowed)
  },
  'forgets all keys and their blocks at once, and keeps its statistics': async ({ limiter, clock }) => {
    const keys = Array.from({ length: 15 }, (_, i) => `key ${i}`)
    await limiter.checkMany(keys, 3)
    clock.advance(10_000)
    const decisions = await Promise.all(keys.map((key) => limiter.check(key, 2)))
    await limiter.refund('key 1', 1)
    await limiter.penalize('key 2', 4_194_303)
    await limiter.block('key 3', '1h')
    await limiter.block('key 4', Number.POSITIVE_INFINITY)
    const before = await limiter.stats()
    await limiter.clearAll()
    assert.equal(await limiter.stats(), before)
    for (const [i, key] of keys.entries()) {
      assert.is(await limiter.usage(key), 0)
      assert.is(await limiter.refund(decisions[i]!), 0, 'the charge is gone')
      assert.is((await limiter.check(key, 5)).remaining, 0)
    }
    await limiter.clearAll()
    assert.is(await limiter.unblock('key 3'), false)
    assert.ok((await limiter.check('key 0', 5)).allowed)
  },
  'wakes the pending calls of every limiter on the same counts when all keys are forgotten': async ({
    limiter,
    second,
  }) => {
    for (const key of ['key', 'other']) await limiter.check(key, 5)
    await limiter.block('other', '1d')
    const waits = [limiter.wait('key'), limiter.wait('other')]
    await limiter.peek('key')
    const other = second()
    other.clearAll()
    for (const wait of waits) assert.ok((await resolved(wait)).allowed)
    await other.check('key', 4)
    const theirs = other.wait('key')
    await limiter.clearAll()
    assert.ok((await resolved(theirs)).allowed)
  },
  'blocks, for a time or for ever, and unblocks': async ({ limiter, clock }) => {
    assert.is(await limiter.block('key', '2s'), true)
    const blocked = await limiter.check('key')
    assert.not(blocked.allowed)
    assert.ok(blocked.retryAfterMs >= 2_000 && blocked.retryAfterMs < 2_063, `${blocked.retryAfterMs}`)
    clock.advance(blocked.retryAfterMs)
    assert.ok((await limiter.check('key')).allowed)
    assert.is(await limiter.block('key', Number.POSITIVE_INFINITY), true)
    assert.is((await limiter.check('key')).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.is(await limiter.unblock('key'), true)
    assert.is(await limiter.unblock('key'), false)
    assert.ok((await limiter.check('key')).allowed)
  },
  'counts usage over a part of the window': async ({ limiter, clock, times }) => {
    await limiter.check('key', 2)
    clock.advance(30_000)
    await limiter.check('key', 1)
    const charges = [
      [0, 2],
      [30_000, 1],
    ] as const
    for (const lastMs of [60_000, 30_000, 10_000]) {
      assert.is(await limiter.usage('key', lastMs), times().usedInLast(lastMs, ...charges), `${lastMs}`)
    }
    assert.is(await limiter.usage('key'), times().usedInLast(60_000, ...charges))
  },
  'accepts its own handles and packed keys, and no others': async ({ limiter, make }) => {
    const handle = limiter.handle('key')
    assert.ok((await limiter.check(handle, 2)).allowed)
    assert.is(await limiter.usage('key'), 2)
    assert.equal([...(await limiter.checkMany(limiter.pack(['key', 'other']), 3)).allowed], [1, 1])
    const foreign = make().handle('key')
    assert.is(await codeOf(async () => limiter.check(foreign)), 'ERR_MILLRACE_FOREIGN_HANDLE')
  },
  'decides a batch in order, also repeated keys': async (subject) => {
    const { limiter, times } = subject
    const keys = ['a', 'b', 'a', 'a', 'b']
    const batch = await limiter.checkMany(keys, [2, 5, 2, 2, 1], { remaining: true })
    assert.is(batch.length, 5)
    assert.equal([...batch.allowed], [1, 1, 1, 0, 0])
    assert.equal([...batch.remaining!], [3, 0, 1, 1, 0])
    assert.equal(
      [0, 1, 2, 3, 4].map((i) => batch.retryAfterMs(i)),
      [0, 0, 0, times().untilFits(2, [0, 4]), times().untilFits(1, [0, 5])],
    )
    for (const i of [0, 3]) assert.is(batch.source(i), sourceIn(subject).source)
    for (const i of [-1, 5, 0.5]) {
      assert.throws(() => batch.retryAfterMs(i), /an index from 0 to 4/)
      assert.throws(() => batch.source(i), /an index from 0 to 4/)
    }
    assert.is((await limiter.checkMany(keys)).remaining, undefined)
    assert.is((await limiter.checkMany([])).length, 0)
  },
  'has its rule, and changes its limit': async ({ limiter, granularityMs }) => {
    const { edge, algorithm, align, maxLimit, ...rule } = limiter.rule
    const window = { windowMs: 60_000, granularityMs: granularityMs(60_000, 1_000) }
    assert.equal(rule, { name: 'default', limit: 5, ...window })
    assert.ok(['strict', 'smooth'].includes(edge))
    await limiter.update('default', { limit: 7 })
    assert.is(limiter.rule.limit, 7)
    assert.ok((await limiter.check('key', 7)).allowed)
  },
  'counts keys and decisions in its statistics': async ({ limiter }) => {
    for (let i = 0; i < 7; i++) await limiter.check('key')
    await limiter.checkMany(['key', 'other'])
    const { keys, allowed, denied } = await limiter.stats()
    assert.equal({ keys, allowed, denied }, { keys: 2, allowed: 6, denied: 3 })
  },
  'rejects a pending wait at once if its block becomes endless': async ({ limiter }) => {
    await limiter.block('key', '1d')
    const code = codeOf(() => limiter.wait('key'))
    await limiter.block('key', Number.POSITIVE_INFINITY)
    assert.is(await resolved(code), 'ERR_MILLRACE_NEVER_ADMITTED')
  },
  'serves pending waits in the order of the calls': async ({ limiter, clock, times }) => {
    await limiter.check('key', 5)
    const served: number[] = []
    const waits = [3, 1].map((cost) => limiter.wait('key', { cost }).then(() => served.push(cost)))
    for (let i = 0; i < 5; i++) await limiter.peek('key')
    assert.equal(served, [])
    clock.advance(times().untilEmpty([0, 5]))
    await resolved(Promise.all(waits))
    assert.equal(served, [3, 1])
  },
  'admits a pending wait as soon as there is room': async ({ limiter }) => {
    const decision = await limiter.check('key', 5)
    let isServed = false
    const wait = limiter.wait('key', { cost: 2 }).then(() => (isServed = true))
    await limiter.peek('key')
    assert.not(isServed)
    await limiter.refund(decision)
    await until(() => isServed, 'the wait to end after a refund')
    await resolved(wait)
  },
  'wakes a call for a key that is cleared, refunded, blocked or unblocked, and none for another key': async ({
    isOnShards,
    limiter,
  }) => {
    for (const key of ['key', 'other']) await limiter.check(key, 5)
    const other = codeOf(() => limiter.wait('other'))
    const changes = [
      () => limiter.clear('key'),
      () => limiter.refund('key', 5),
      async () => {
        await limiter.block('key', '1h')
        await limiter.refund('key', 5)
        await limiter.unblock('key')
      },
    ]
    for (const change of changes) {
      const waiting = limiter.wait('key', { cost: 5 })
      await limiter.peek('key')
      await turn() // the policy of its key is looked up first, where there are policies
      await change()
      assert.ok((await resolved(waiting)).allowed)
    }
    // Where a decision takes two servers, one of them may begin before a change and end after the next one.
    if (!isOnShards)
      assert.is(
        (await limiter.stats()).denied,
        6,
        'each once, the other call too, one as the block begins, and one before its end',
      )
    await limiter.close()
    assert.is(await resolved(other), 'ERR_MILLRACE_CLOSED')
  },
  'wakes a call when a limiter on the same counts raises the limit': async (subject) => {
    const { limiter, second, clock, times, algorithm } = subject
    await limiter.check('key', 5)
    const waiting = limiter.wait('key')
    await limiter.peek('key')
    second().update('default', { limit: 6 })
    if (algorithm.countsInParts) clock.advance(times({ ...limiter.rule, limit: 6 }).untilFits(1, [0, 5, 5]))
    assert.ok((await resolved(waiting)).allowed)
  },
  'rejects a wait that can never be admitted': async ({ limiter }) => {
    assert.is(await codeOf(() => limiter.wait('key', { cost: 6 })), 'ERR_MILLRACE_NEVER_ADMITTED')
    await limiter.block('key', Number.POSITIVE_INFINITY)
    assert.is(await codeOf(() => limiter.wait('key')), 'ERR_MILLRACE_NEVER_ADMITTED')
  },
  'refuses invalid arguments by name': async ({ limiter }) => {
    for (const [act, code] of [
      [() => limiter.check(''), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.check(7 as never), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.check('key', -1), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.check('key', 0.5), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.peek('key', Number.NaN), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.check('key', 1, null as never), 'ERR_MILLRACE_INVALID_OPTION'],
      [() => limiter.peek('key', 1, { limits: 1 } as never), 'ERR_MILLRACE_INVALID_OPTION'],
      ...BAD_LIMITS.flatMap((limit): [() => unknown, ErrorCode][] => [
        [() => limiter.check('key', 1, { limit: limit as never }), 'ERR_MILLRACE_INVALID_OPTION'],
        [() => limiter.checkOrThrow('key', 1, { limit: limit as never }), 'ERR_MILLRACE_INVALID_OPTION'],
        [() => limiter.peek('key', 1, { limit: limit as never }), 'ERR_MILLRACE_INVALID_OPTION'],
        [() => limiter.wait('key', { limit: limit as never }), 'ERR_MILLRACE_INVALID_OPTION'],
      ]),
      [() => limiter.checkMany('key' as never), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.checkMany(['key', '']), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.checkMany(['key'], [1, 1]), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.checkMany(['key'], -1), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.checkMany(['key'], 1, { remain: true } as never), 'ERR_MILLRACE_INVALID_OPTION'],
      [() => limiter.checkMany(['key'], 1, { remaining: 1 } as never), 'ERR_MILLRACE_INVALID_OPTION'],
      [() => limiter.usage('key', 'soon' as never), 'ERR_MILLRACE_INVALID_DURATION'],
      [() => limiter.block('key', -1), 'ERR_MILLRACE_INVALID_DURATION'],
      [() => limiter.penalize('key', -1), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.refund('key', 0.1), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.wait('key', { costs: 1 } as never), 'ERR_MILLRACE_INVALID_OPTION'],
      [() => limiter.wait('key', { signal: {} } as never), 'ERR_MILLRACE_INVALID_OPTION'],
      [() => limiter.update('other', { limit: 1 }), 'ERR_MILLRACE_INVALID_RULE'],
      [() => limiter.update('default', { limit: 0 }), 'ERR_MILLRACE_INVALID_RULE'],
    ] as const) {
      assert.is(await codeOf(async () => act()), code, `${act}`)
    }
    assert.is((await limiter.stats()).keys, 0, 'nothing was charged')
  },
  'refuses every call once it is closed': async ({ limiter, make }) => {
    const foreign = await make().check('key')
    assert.is(await codeOf(async () => limiter.refund(foreign)), 'ERR_MILLRACE_FOREIGN_DECISION')
    const wait = codeOf(() => limiter.wait('key', { cost: 5 }).then(() => limiter.wait('key')))
    await limiter.peek('key')
    await limiter.close()
    await limiter.close()
    assert.is(await resolved(wait), 'ERR_MILLRACE_CLOSED')
    for (const act of [
      () => limiter.check('key'),
      () => limiter.check('key', 1, { limit: 9 }),
      () => limiter.checkOrThrow('key'),
      () => limiter.reserve('key', 1),
      () => limiter.peek('key'),
      () => limiter.peek('key', 1, { limit: 9 }),
      () => limiter.checkMany(['key']),
      () => limiter.usage('key'),
      () => limiter.refund('key', 1),
      () => limiter.block('key', 1),
      () => limiter.wait('key'),
      () => limiter.ready(),
      () => limiter.clearAll(),
      () => limiter.stats(),
      () => limiter.update('default', { limit: 1 }),
      () => limiter.rule,
      () => limiter.handle('key'),
      () => limiter.pack(['key']),
      () => limiter.share(),
    ]) {
      assert.is(await codeOf(async () => act()), 'ERR_MILLRACE_CLOSED', `${act}`)
    }
  },
}

conform(
  [[CLAIMS, FIVE]],
  /of every limiter on|a limiter on the same counts raises|packed keys|counts keys/,
  /forgets all keys|usage over a part/,
)
