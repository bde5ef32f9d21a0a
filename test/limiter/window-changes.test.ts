// `update` changes the window or the granularity of a rule: what it refuses, full tables, and decisions from
// before the change. What holds for every limiter is in test/conformance/window-changes.test.ts.
import { attachLimiter, createLimiter, group, type Limiter, type RuleChange } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, limiterWith, START_MS } from './support.js'

const left = (limiter: Limiter, key = 'key') => limiter.peek(key).remaining

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

test('a cell that counts more than a bucket holds keeps as many units as fit in one', () => {
  const { limiter, clock } = limiterWith()
  limiter.penalize('key', 4_194_303)
  clock.advance(1_000)
  limiter.penalize('key', 3)
  assert.is(limiter.usage('key'), 4_194_306)
  limiter.update('default', { window: '1h' })
  assert.not(limiter.check('key').allowed)
  assert.is(limiter.usage('key'), 4_194_302)
  clock.advance(61 * 60_000)
  assert.ok(limiter.check('key', 5).allowed)
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

test('a change between a reading of the clock and the decision by it forgets nothing', () => {
  const calls: Record<string, (limiter: Limiter) => boolean> = {
    check: (limiter) => limiter.check('key', 3).allowed,
    'check by a limit of its own': (limiter) => {
      return limiter.check('key', 3, { limit: limiter.rules.length > 1 ? { default: 5 } : 5 }).allowed
    },
    'check by a handle': (limiter) => limiter.check(limiter.handle('key'), 3).allowed,
    checkMany: (limiter) => limiter.checkMany(Array(20).fill('key'), 3).allowed.includes(1),
    peek: (limiter) => limiter.peek('key', 3).allowed,
    'a group': (limiter) => group({ limiter }).check({ limiter: 'key' }, 3).allowed,
    reserve: (limiter) => limiter.reserve('key', 3).decision.allowed,
  }
  const rules = [
    { name: 'default', limit: 5, window: '1m' },
    { name: 'hourly', limit: 50, window: '1h' },
  ] as const
  for (const [name, call] of Object.entries(calls)) {
    for (const options of [{ limit: 5, window: '1m' }, { rules }] as const) {
      let nowMs = START_MS
      let beforeReading = () => {}
      const clock = {
        now: () => {
          beforeReading()
          return nowMs
        },
      }
      const limiter = createLimiter({ ...options, maxKeys: 20, clock })
      const other = attachLimiter(limiter.share(), { clock: { now: () => nowMs } })
      limiter.check('key', 3)
      beforeReading = () => {
        beforeReading = () => {}
        other.update('default', { window: '1h' })
        nowMs += 62_000 // the 3 would not count in a minute
      }
      assert.not(call(limiter), name)
    }
  }
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

test.run()
