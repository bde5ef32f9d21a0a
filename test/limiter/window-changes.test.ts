// `update` changes the window or the granularity of a rule while it runs.
import { attachLimiter, createLimiter, group, type Limiter, manualClock, type RuleChange } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, limiterWith, resolved, START_MS } from './support.js'

const left = (limiter: Limiter, key = 'key') => limiter.peek(key).remaining

test('a longer window counts what counted at the change, for one new window', () => {
  const { limiter, clock } = limiterWith() // 5 a minute
  limiter.check('key', 3)
  limiter.update('default', { window: '1h' })
  assert.equal([limiter.rule.windowMs, limiter.rule.granularityMs], [3_600_000, 60_000])
  clock.advance(59 * 60_000)
  assert.equal([left(limiter), limiter.usage('key')], [2, 3])
  assert.not(limiter.check('key', 3).allowed)
  clock.advance(3 * 60_000)
  assert.ok(limiter.check('key', 5).allowed)
})

test('a longer window also counts what has left the old one since the change', () => {
  const { limiter, clock } = limiterWith()
  limiter.check('key', 5)
  clock.advance(30_000)
  limiter.update('default', { window: '1h' })
  clock.advance(40_000) // 70 s after the charge: none of the 5 would count in a minute
  assert.is(left(limiter), 0)
  assert.not(limiter.check('key').allowed)
})

test('a shorter window admits again after one of its windows, and the figures are exact', () => {
  const { limiter, clock } = limiterWith({ window: '1h', granularity: '1m' })
  limiter.check('key', 5)
  limiter.update('default', { window: '1m', limit: 6 })
  clock.advance(10)
  const refused = limiter.check('key', 2)
  assert.equal([refused.allowed, refused.remaining, refused.limit], [false, 1, 6])
  clock.advance(refused.retryAfterMs - 1)
  assert.not(limiter.check('key', 2).allowed)
  clock.advance(1)
  assert.ok(limiter.check('key', 2).allowed)
})

test('a granularity of more buckets than the cells have is refused by an error, and changes nothing', () => {
  const { limiter } = limiterWith() // 60 buckets
  const refuse = (change: RuleChange, finest: string) => {
    const { message } = assertRaises(
      () => limiter.update('default', change),
      'ERR_MILLRACE_INVALID_RULE',
      'granularity',
    )
    assert.match(message, `the finest granularity is ${finest}`)
  }
  refuse({ granularity: '500ms' }, '1s')
  refuse({ window: '1h', granularity: '1s', limit: 9 }, '1m')
  refuse({ window: '61s', granularity: '1s' }, '1220ms')
  assert.equal([limiter.rule.windowMs, limiter.rule.granularityMs, limiter.rule.limit], [60_000, 1_000, 5])
  limiter.update('default', { granularity: '10s' })
  assert.equal([limiter.rule.windowMs, limiter.rule.granularityMs], [60_000, 10_000])
  limiter.update('default', { granularity: '1s' })
  assert.is(limiter.rule.granularityMs, 1_000)
})

test('cells with nodes refuse a window of too few buckets', () => {
  for (const [granularity, rangeSum, least] of [
    ['100ms', 'blocks', 257],
    ['10ms', 'blocks', 4_097],
    ['10ms', 'fenwick', 3_000],
  ] as const) {
    const { limiter } = limiterWith({ granularity, rangeSum })
    const act = () => limiter.update('default', { granularity: 60_000 / 60 })
    const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'granularity')
    assert.match(message, `a window of ${least} to`)
    limiter.check('key', 2)
    limiter.update('default', { window: '10m' })
    assert.is(left(limiter), 3)
  }
})

test('wrong windows and granularities are refused by name', () => {
  const { limiter } = limiterWith()
  for (const window of [0, -1, Number.NaN, 'x', null, '20000y', {}]) {
    const code =
      typeof window === 'number' && window <= 0 ? 'ERR_MILLRACE_INVALID_RULE' : 'ERR_MILLRACE_INVALID_RULE'
    assertRaises(() => limiter.update('default', { window: window as never }), code, 'window')
  }
  for (const granularity of [0, '7s', '2m', null]) {
    const act = () => limiter.update('default', { granularity: granularity as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'granularity')
  }
  const unknown = () => limiter.update('default', { limit: 4, edge: 'smooth' } as never)
  assertRaises(unknown, 'ERR_MILLRACE_INVALID_OPTION', 'change')
  assert.equal([limiter.rule.windowMs, limiter.rule.limit], [60_000, 5])
})

test('a rule can have 64 windows; one more is refused, and so is none of those it has at present', () => {
  const { limiter } = limiterWith()
  for (let i = 1; i < 64; i++) limiter.update('default', { window: 60_000 + i * 60 })
  limiter.check('key')
  const { message } = assertRaises(
    () => limiter.update('default', { window: '1h', limit: 9 }),
    'ERR_MILLRACE_INVALID_RULE',
    'window',
  )
  assert.match(message, '64')
  limiter.update('default', { window: 60_000 + 63 * 60, limit: 7 })
  assert.equal([limiter.rule.limit, left(limiter)], [7, 6])
})

test('the same window again makes no new record, and converts nothing', () => {
  const { limiter, clock } = limiterWith()
  limiter.check('key', 2)
  clock.advance(30_000)
  for (let i = 0; i < 100; i++) limiter.update('default', { window: '1m', granularity: '1s', limit: 10 + i })
  clock.advance(31_000)
  assert.is(left(limiter), 109)
})

test('a key that has rested for several windows and changes starts afresh', () => {
  const { limiter, clock } = limiterWith()
  limiter.check('key', 5)
  for (const window of ['2m', '10s', '5m'] as const) {
    limiter.update('default', { window })
    clock.advance(3_600_000)
  }
  assert.is(left(limiter), 5)
  assert.ok(limiter.check('key', 5).allowed)
})

test('two attached limiters notice a change of each other at once', () => {
  const { limiter, clock } = limiterWith()
  const other = attachLimiter(limiter.share())
  limiter.check('key', 2)
  other.check('other', 2)
  other.update('default', { window: '1h' })
  assert.equal([limiter.rule.windowMs, left(limiter), left(limiter, 'other')], [3_600_000, 3, 3])
  assert.ok(limiter.check('key').allowed)
  assert.is(left(other), 2)
  limiter.update('default', { window: '1m', limit: 10 })
  clock.advance(123_000) // buckets of a minute, and a window
  assert.ok(other.check('key', 10).allowed)
  assert.not(limiter.check('key').allowed)
  const late = attachLimiter(limiter.share())
  assert.equal([late.rule.windowMs, late.rule.limit, left(late)], [60_000, 10, 0])
})

test('a blocked key stays blocked, and has its counts after the block', () => {
  const { limiter, clock } = limiterWith()
  limiter.check('key', 4)
  limiter.block('key', '10m')
  limiter.update('default', { window: '1h' })
  assert.equal([limiter.check('key').allowed, limiter.peek('key', 0).allowed], [false, false])
  assert.ok(limiter.unblock('key'))
  assert.is(left(limiter), 1)
  limiter.block('key', '2h')
  limiter.update('default', { window: '1m' })
  clock.advance(7_200_001)
  assert.is(left(limiter), 5)
})

test('refund, penalize, clear and clearAll work on cells of an earlier window', () => {
  const { limiter } = limiterWith({ limit: 9 })
  const keys = ['refund', 'penalize', 'clear', 'all']
  for (const key of keys) limiter.check(key, 5)
  limiter.update('default', { window: '1h' })
  assert.is(limiter.refund('refund', 2), 2)
  assert.ok(limiter.penalize('penalize', 3))
  limiter.clear('clear')
  assert.equal(
    keys.map((key) => left(limiter, key)),
    [6, 1, 9, 4],
  )
  for (const key of keys) limiter.check(key)
  limiter.update('default', { window: '1m' })
  limiter.clearAll()
  assert.equal(
    keys.map((key) => left(limiter, key)),
    [9, 9, 9, 9],
  )
})

test('a decision from before the change is given back as long as its key was not decided since', () => {
  const { limiter } = limiterWith()
  const [early, late] = [limiter.check('early', 3), limiter.check('late', 3)]
  limiter.update('default', { window: '1h' })
  assert.is(limiter.refund(early), 3)
  assert.is(left(limiter, 'early'), 5)
  assert.is(left(limiter, 'late'), 2)
  assert.is(limiter.refund(late), 0)
  assert.is(left(limiter, 'late'), 2, 'what is not given back still counts')
  const after = limiter.check('late', 2)
  assert.is(limiter.refund(after), 2)
})

test('a decision given back long after the change takes nothing else with it', () => {
  const { limiter, clock } = limiterWith({ limit: 100, window: '1s', granularity: '100ms' })
  const decision = limiter.check('key')
  limiter.check('key', 99)
  attachLimiter(limiter.share()).update('default', { window: '1h' })
  clock.advance(7_000)
  limiter.refund(decision)
  assert.not(limiter.check('key', 50).allowed)
})

test('the figures of a decision read after the change are never better than at the decision', () => {
  for (const window of ['1h', '10s'] as const) {
    const { limiter } = limiterWith()
    const decision = limiter.check('key', 2)
    limiter.check('full', 5)
    const refused = limiter.check('full')
    limiter.update('default', { window })
    limiter.check('key')
    limiter.check('full')
    assert.ok(decision.remaining <= 3)
    assert.ok(decision.resetMs >= 60_000)
    assert.ok(refused.retryAfterMs >= 59_000)
  }
})

test('waiting calls follow a shorter window', async () => {
  const { limiter, clock } = limiterWith({ window: '1h', granularity: '1m' })
  limiter.check('key', 5)
  const waiting = limiter.wait('key')
  limiter.update('default', { window: '1m' })
  clock.advance(123_000) // a bucket of a minute, and a window
  assert.ok((await resolved(waiting)).allowed)
})

test('in a full table, cells of the earlier window keep their counts, and expire by it', () => {
  for (const onFull of ['deny', 'evict'] as const) {
    const { limiter, clock } = limiterWith({ maxKeys: 1, onFull })
    for (let i = 0; i < 32; i++) assert.ok(limiter.check(`key ${i}`, 5).allowed)
    limiter.update('default', { window: '1h' })
    assert.not(limiter.check('new').allowed, 'no place, or one with its counts')
    assert.not(limiter.check('key 31').allowed)
    clock.advance(2 * 3_600_000 + 120_000)
    for (let i = 0; i < 32; i++) assert.ok(limiter.check(`fresh ${i}`, 5).allowed)
  }
  const { limiter, clock } = limiterWith({ maxKeys: 1, onFull: 'deny' })
  for (let i = 0; i < 32; i++) limiter.check(`key ${i}`, 5)
  clock.advance(62_000)
  limiter.update('default', { window: '10s' })
  assert.ok(limiter.check('new', 5).allowed, 'the others have expired')
  assert.is(limiter.stats().evictedLive, 0)
})

test('each of several rules changes by itself; retryAfterMs is exact for all together', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({
    rules: [
      { name: 'burst', limit: 2, window: '1s' },
      { name: 'hourly', limit: 6, window: '1h' },
    ],
    clock,
  })
  assert.ok(limiter.check('key', 2).allowed)
  limiter.update('burst', { limit: 3, window: '10s' })
  assert.equal(
    limiter.rules.map(({ windowMs, limit }) => [windowMs, limit]),
    [
      [10_000, 3],
      [3_600_000, 6],
    ],
  )
  assert.not(limiter.check('key', 2).allowed)
  assert.is(limiter.usage('key', undefined, { rule: 'hourly' }), 2)
  clock.advance(11_000)
  assert.ok(limiter.check('key', 3).allowed)
  limiter.update('hourly', { window: '1m' })
  const refused = limiter.check('key', 2)
  assert.not(refused.allowed)
  clock.advance(refused.retryAfterMs - 1)
  assert.not(limiter.check('key', 2).allowed)
  clock.advance(1)
  assert.ok(limiter.check('key', 2).allowed)
})

test('a group goes on by the changed rule of a member', () => {
  const { limiter: account } = limiterWith()
  const { limiter: address } = limiterWith({ limit: 9 })
  const both = group({ account, address })
  assert.ok(both.check({ account: 'a', address: 'b' }, 3).allowed)
  account.update('default', { window: '1h' })
  address.update('default', { window: '10s', limit: 20 })
  assert.not(both.check({ account: 'a', address: 'b' }, 3).allowed)
  assert.equal([left(account, 'a'), left(address, 'b')], [2, 17])
})

test('a rule with a unit, and one that counts its refusals', () => {
  const { limiter } = limiterWith({ limit: '100KB', unit: '1KB' })
  limiter.check('key', 40_000)
  limiter.update('default', { window: '1h', limit: '200KB' })
  assert.is(left(limiter), 160_000)
  const { limiter: counting } = limiterWith({ countRefused: true })
  counting.check('key', 5)
  counting.update('default', { window: '1h' })
  counting.check('key')
  assert.is(counting.usage('key'), 6)
})

test('a batch begun before the change decides each key by the present rule', () => {
  const { limiter } = limiterWith()
  const keys = Array.from({ length: 40 }, (_, i) => `key ${i % 20}`)
  limiter.checkMany(keys, 2)
  limiter.update('default', { window: '1h', limit: 6 })
  const batch = limiter.checkMany(keys, 1, { remaining: true })
  assert.equal([...batch.allowed], Array(40).fill(1))
  assert.equal([...batch.remaining!], [...Array(20).fill(1), ...Array(20).fill(0)])
  assert.is(limiter.checkMany(keys).allowed.indexOf(1), -1)
})

test('the threads of a pool follow a change', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({
    limit: 5,
    window: '1m',
    granularity: '1s',
    maxKeys: 20,
    clock,
    engine: 'pool',
    pool: { minThreads: 2, maxThreads: 2 },
  })
  await Promise.all(Array.from({ length: 20 }, (_, i) => limiter.check(`key ${i}`, 3)))
  await limiter.update('default', { window: '1h', limit: 6 })
  assert.is(limiter.rule.windowMs, 3_600_000)
  clock.advance(62_000)
  const found = await Promise.all(Array.from({ length: 20 }, (_, i) => limiter.check(`key ${i}`, 2)))
  assert.equal(
    found.map(({ allowed, remaining, limit }) => [allowed, remaining, limit]),
    Array(20).fill([true, 1, 6]),
  )
  assert.is(await limiter.usage('key 0'), 5)
  assert.is(await limiter.refund(found[0]!), 2)
  await limiter.close()
})

test.run()
