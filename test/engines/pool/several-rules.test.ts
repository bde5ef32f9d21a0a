// Several rules on a pool: the differences from a limiter that decides on the calling thread. The contract is
// in test/conformance/several-rules.test.ts and several-rules-changes.test.ts.
import { inspect } from 'node:util'
import {
  type AsyncLimiter,
  attachLimiter,
  createLimiter,
  type ManualClock,
  MillraceError,
  manualClock,
  type PoolOptions,
  type RuleOptions,
} from 'millrace'
import { attachPool } from 'millrace/internal'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BURST, HOURLY, usageOf } from '../../conformance/several-rules.js'
import { assertRaises, assertRejects, START_MS, settled } from '../../limiter/support.js'
import { pooled } from '../both.js'

interface Made extends AsyncDisposable {
  readonly clock: ManualClock
  readonly limiter: AsyncLimiter
}

function severalOf(rules: readonly RuleOptions[], pool: PoolOptions = {}): Made {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ rules, maxKeys: 200, clock, engine: 'pool', pool })
  return { clock, limiter, [Symbol.asyncDispose]: () => limiter.close() }
}

const LARGE = [
  { ...BURST, limit: 100_000 },
  { ...HOURLY, limit: 200_000 },
]

test('requests beyond the capacity of a ring are decided in order, each with the figures of every rule', async () => {
  await using made = severalOf(LARGE, { maxThreads: 1 })
  const asked = Array.from({ length: 5_000 }, (_, i) => made.limiter.check(`${i % 7}`))
  for (const [i, { rules }] of (await Promise.all(asked)).entries()) {
    const used = Math.floor(i / 7) + 1
    assert.equal(
      rules.map(({ remaining }) => remaining),
      [100_000 - used, 200_000 - used],
    )
  }
})

test('a key keeps its order across decisions, batches, limits of a call and changes that are not awaited', async () => {
  await using made = severalOf([BURST, HOURLY], { minThreads: 2, maxThreads: 2 })
  const { limiter } = made
  const [first, batch, within, refunded, used, , last] = await Promise.all([
    limiter.check('key', 2),
    limiter.checkMany(['key', 'other', 'key'], [3, 6, 1], { remaining: true }),
    limiter.check('key', 4, { limit: { burst: 9 } }),
    limiter.refund('key', 6),
    limiter.usage('key', '1h', { rule: 'hourly' }),
    limiter.clear('key'),
    limiter.check('key', 5),
  ])
  assert.is(first.remaining, 3)
  assert.equal([...batch.allowed, ...batch.remaining!], [1, 0, 0, 0, 5, 0])
  assert.equal([within.allowed, within.rule, within.remaining], [true, 'burst', 0])
  assert.equal([refunded, used, last.allowed, last.remaining], [6, 3, true, 0])
})

test('16 rules decide as one', async () => {
  const rules = Array.from({ length: 16 }, (_, i) => ({ name: `${i}`, limit: 20 - i, window: '1m' }))
  await using made = severalOf(rules)
  const { limiter } = made
  const admitted = await limiter.check('key', 5)
  assert.equal([admitted.rule, admitted.remaining, admitted.rules.length], ['15', 0, 16])
  const refused = await limiter.check('key')
  assert.equal([refused.rule, refused.rules.filter(({ allowed }) => allowed).length], ['15', 15])
  assert.is(await limiter.refund(admitted), 5)
  assert.equal(await usageOf(limiter), Array(16).fill(0))
})

test('a pool on the counts of another limiter decides by the same rules', async () => {
  const clock = manualClock(START_MS)
  const inline = createLimiter({ rules: [BURST, HOURLY], maxKeys: 20, clock })
  const pool = attachPool(structuredClone(inline.share()), { maxThreads: 1 })
  assert.equal(pool.rules, inline.rules)
  const theirs = inline.check('key', 3)
  const ours = await pool.check('key', 2)
  assert.equal([ours.rule, ours.remaining], ['burst', 0])
  const raised = () => pool.refund(theirs)
  await assertRejects(raised, 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
  assertRaises(() => inline.refund(ours), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
  inline.update('hourly', { limit: 6 })
  await pool.update('burst', { limit: 50 })
  assert.equal([inline.check('key', 2).rule, (await pool.check('key', 2)).rule], ['hourly', 'hourly'])
  const third = attachLimiter(pool.share())
  assert.equal(third.rules, inline.rules)
  assert.ok(third.check('key').allowed)
  assert.equal(await usageOf(pool), [6, 6])
  for (const each of [third, pool, inline]) await each.close()
})

test('`rules` with one rule is the same as the options of one rule', async () => {
  await using made = severalOf([BURST])
  const decision = await made.limiter.check('key', 1, { limit: 7 })
  assert.equal([decision.limit, decision.toJSON().rules], [7, undefined])
  assert.is(await made.limiter.refund(decision), 1)
})

test('a call that is aborted in flight stays charged in every rule, and one that was aborted before is not made', async () => {
  await using made = severalOf([BURST, HOURLY])
  const { limiter } = made
  const controller = new AbortController()
  const { signal } = controller
  const options = { signal, limit: { burst: 9 } }
  const call = limiter.check('key', 7, options)
  controller.abort('gone')
  const outcomes = await Promise.allSettled<unknown>([
    call,
    limiter.check('key', 1, options),
    limiter.peek('key', 1, options),
    limiter.reserve('key', 1, options),
    limiter.checkMany(['key'], 1, { signal }),
  ])
  for (const [i, outcome] of outcomes.entries()) {
    const { reason } = outcome as PromiseRejectedResult
    assert.ok(reason instanceof MillraceError)
    assert.equal([reason.code, reason.cause, reason.mayBeCharged], ['ERR_MILLRACE_ABORTED', 'gone', i === 0])
  }
  assert.equal(await usageOf(limiter), [7, 7])
})

test('a refund that was rejected for lack of room can be repeated, in every rule', async () => {
  await using made = severalOf([BURST, HOURLY], { maxPending: 2 })
  const { limiter, clock } = made
  const decision = await limiter.check('key', 4)
  clock.advance(20_000)
  await limiter.check('key', 1)
  const pending = [limiter.check('other'), limiter.check('other')]
  await assertRejects(() => limiter.refund(decision), 'ERR_MILLRACE_OVERLOADED', 'pool')
  await Promise.all(pending)
  assert.equal([await limiter.refund(decision), await limiter.refund(decision)], [4, 0])
  assert.equal(await usageOf(limiter), [1, 1])
})

for (const several of [false, true]) {
  test(`an aborted wait gives back nothing if a rule in shadow mode has not charged it: ${several ? 2 : 1} rules`, async () => {
    const rules = [{ ...BURST, shadow: true }, ...(several ? [{ ...HOURLY, shadow: true }] : [])]
    await using made = severalOf(rules)
    const { limiter } = made
    await limiter.check('key', 5)
    const controller = new AbortController()
    // Enforced, the limit of the call would refuse the request. So the decision charges nothing.
    const limit = several ? { burst: 4, hourly: 4 } : 4
    const waiting = limiter.wait('key', { cost: 3, limit, signal: controller.signal })
    await undefined // by now its request is in flight
    controller.abort('gone')
    assert.is((await settled(waiting)).status, 'rejected')
    for (let i = 0; i < 2; i++) await limiter.peek('key')
    assert.equal(await usageOf(limiter), several ? [5, 5] : [5])
  })
}

test('console.log of the limiter and of its decision shows all rules', async () => {
  await using made = severalOf([BURST, HOURLY])
  const { limiter } = made
  const decision = await limiter.check('key')
  for (const shown of [inspect(limiter, { depth: 4 }), inspect(decision, { depth: 4 })])
    for (const name of ['burst', 'hourly']) assert.match(shown, name)
  const copy = structuredClone(decision.toJSON())
  assert.equal(
    copy.rules!.map(({ rule }) => rule),
    ['burst', 'hourly'],
  )
  const { allowed, rules } = structuredClone({ ...decision })
  assert.equal([allowed, rules[1]!.remaining], [true, 11], 'a part has all of its figures')
})

test('if a reading is too far off for one rule, no rule is charged, and the pool keeps working', async () => {
  await using made = severalOf([
    { ...HOURLY, window: '10000d', granularity: '1000d' },
    { ...BURST, window: 1, granularity: 1 },
  ])
  const { limiter, clock } = made
  await limiter.check('key')
  clock.set(Number.MAX_SAFE_INTEGER - 1)
  for (const call of [
    () => limiter.check('key'),
    () => limiter.checkMany(['key']),
    () => limiter.peek('key'),
  ]) {
    const error = await assertRejects(call, 'ERR_MILLRACE_WORKER_LOST', 'engine')
    assert.match(String(error.cause), 'milliseconds small enough to distinguish')
  }
  clock.set(START_MS)
  assert.equal(await usageOf(limiter), [1, 1])
})

test('options that a pool does not accept are refused by name, as with one rule', async () => {
  const rules = [BURST, HOURLY]
  const create = (more: object) => createLimiter({ rules, engine: 'pool', ...more })
  for (const [more, code, option] of [
    [{ pool: { minThreads: 0 } }, 'ERR_MILLRACE_INVALID_OPTION', 'pool.minThreads'],
    [{ pool: { threads: 1 } }, 'ERR_MILLRACE_INVALID_OPTION', 'pool'],
    [{ clock: { now: () => 1 } }, 'ERR_MILLRACE_INVALID_CLOCK', 'clock'],
    [{ limit: 5 }, 'ERR_MILLRACE_INVALID_OPTION', 'limit'],
    [{ rules: [] }, 'ERR_MILLRACE_INVALID_RULE', 'rules'],
    [{ rules: [BURST, BURST] }, 'ERR_MILLRACE_INVALID_RULE', 'rules[1].name'],
    [{ rules: [BURST, { ...HOURLY, limit: 0 }] }, 'ERR_MILLRACE_INVALID_RULE', 'rules[1].limit'],
    [{ maxKeys: 2 ** 40 }, 'ERR_MILLRACE_ARENA_TOO_LARGE', 'maxKeys'],
  ] as const) {
    assertRaises(() => create(more), code, option)
  }
  const share = createLimiter({ rules, maxKeys: 20 }).share()
  const renamed = { ...share, rules: ['burst', 'burst'] }
  assertRaises(() => attachPool(renamed), 'ERR_MILLRACE_INVALID_SHARE', 'shared.rules')
})

test('wrong options of usage are refused by name, also with one rule', async () => {
  await using made = pooled()
  for (const [options, code, option] of [
    [{ rule: 'hourly' }, 'ERR_MILLRACE_INVALID_RULE', 'rule'],
    [{ rules: 'default' }, 'ERR_MILLRACE_INVALID_OPTION', 'options'],
    [null, 'ERR_MILLRACE_INVALID_OPTION', 'options'],
  ] as const) {
    await assertRejects(() => made.limiter.usage('key', '1s', options as never), code, option)
  }
  assert.is(await made.limiter.usage('key', '1s', { rule: 'default' }), 0)
})

test.run()
