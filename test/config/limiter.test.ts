import { attachLimiter, createLimiter, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { DEFAULT, limiterWith } from './configured.js'

test('the policy of the key, else that of the longest prefix, else the default', async () => {
  const { admitted } = limiterWith({
    'user:*': { limit: 3, window: '1m' },
    'user:vip:*': { limit: 5, window: '1m' },
    'user:vip:1': { limit: 7, window: '1m' },
  })
  assert.is(admitted('user:vip:1'), 7)
  assert.is(admitted('user:vip:2'), 5)
  assert.is(admitted('user:vip'), 3)
  assert.is(admitted('user:1'), 3)
  assert.is(admitted('users'), 2)
  assert.is(admitted('user'), 2)
})

test('at most eight prefixes are looked up', () => {
  const { admitted } = limiterWith({ 'a:a:a:a:a:a:a:a:*': { limit: 8, window: '1m' } })
  assert.is(admitted('a:a:a:a:a:a:a:a:x'), 8)
  assert.is(admitted('a:a:a:a:a:a:a:a:a:a:x'), 8)
  assert.is(admitted('a:a:a:a:a:a:a:x'), 2)
})

test('a changed limit holds for a live key at once, and forgets nothing', async () => {
  const { limiter, config, admitted } = limiterWith({ a: { limit: 5, window: '1m' } })
  assert.is(admitted('a'), 5)
  await config.put('a', { limit: 8, window: '1m' })
  assert.is(admitted('a'), 3)
  await config.put('a', { limit: 4, window: '1m' })
  const refused = limiter.check('a')
  assert.equal([refused.allowed, refused.limit, refused.remaining], [false, 4, 0])
  await config.delete('a')
  assert.is(limiter.check('a').limit, 2)
  await config.put('*', { limit: 100, window: '1m' })
  assert.is(limiter.check('a').limit, 2, 'a star alone is no prefix')
})

test('a changed prefix reaches the keys under it', async () => {
  const { config, admitted } = limiterWith()
  assert.is(admitted('user:1'), 2)
  await config.put('user:*', { limit: 6, window: '1m' })
  assert.is(admitted('user:1'), 4)
})

test('several rules, units and every algorithm', async () => {
  const both = (burst: number, hourly: number): Policy => ({
    rules: [
      { name: 'burst', limit: burst, window: '1s' },
      { name: 'hourly', limit: hourly, window: '1h' },
    ],
  })
  const { limiter, config, clock, admitted } = limiterWith({
    both: both(2, 5),
    bytes: { limit: '10MB', unit: '1MB', window: '1m' },
    bucket: { limit: 4, window: '1m', algorithm: 'token-bucket' },
    burst: { limit: 4, window: '1m', algorithm: 'token-bucket', burst: 9 },
    log: { limit: 3, window: '1m', algorithm: 'sliding-log' },
    fixed: { limit: 6, window: '1m', algorithm: 'fixed-window' },
    shadow: { limit: 1, window: '1m', shadow: true },
  })
  assert.is(admitted('both'), 2)
  assert.is(limiter.check('both').rule, 'burst')
  clock.advance(2_000)
  assert.is(admitted('both'), 2)
  await config.put('both', both(2, 4))
  clock.advance(2_000)
  assert.is(limiter.check('both').rule, 'hourly')
  assert.ok(limiter.check('bytes', 9e6).allowed)
  assert.not(limiter.check('bytes', 2e6).allowed)
  await config.put('bytes', { limit: '12MB', unit: '1MB', window: '1m' })
  assert.ok(limiter.check('bytes', 2e6).allowed)
  assert.is(limiter.peek('bytes', 2e6).limit, 12e6)
  for (const [key, count] of [
    ['bucket', 4],
    ['burst', 9],
    ['log', 3],
    ['fixed', 6],
  ] as const)
    assert.is(admitted(key), count, key)
  await config.put('bucket', { limit: 6, window: '1m', algorithm: 'token-bucket' })
  assert.ok(admitted('bucket') <= 2)
  for (let i = 0; i < 3; i++) assert.ok(limiter.check('shadow').allowed)
})

test('all methods go by the policy of the key', async () => {
  const { limiter } = limiterWith({ a: { limit: 10, window: '1h' } })
  assert.is(limiter.peek('a', 10).allowed, true)
  const decision = limiter.check('a', 4)
  assert.is(limiter.usage('a'), 4)
  assert.is(limiter.refund(decision), 4)
  assert.is(limiter.refund(decision), 0)
  const reservation = limiter.reserve('a', 3)
  reservation.commit(5)
  assert.is(limiter.usage('a'), 5)
  assert.is(limiter.refund('a', 1), 1)
  limiter.penalize('a', 2)
  assert.is(limiter.peek('a', 0).remaining, 4)
  assert.is(limiter.check('a', 1, { limit: 6 }).allowed, false)
  assert.is(limiter.peek('a', 1, { limit: 7 }).allowed, true)
  assert.is((await limiter.wait('a', { cost: 2 })).remaining, 2)
  assert.throws(() => limiter.checkOrThrow('a', 11))
  limiter.block('a', '1s')
  assert.is(limiter.check('a', 0).allowed, false)
  assert.is(limiter.unblock('a'), true)
  assert.is(limiter.unblock('a'), false)
  limiter.clear('a')
  assert.is(limiter.usage('a'), 0)
  limiter.check('a')
  limiter.check('default')
  limiter.clearAll()
  assert.equal([limiter.usage('a'), limiter.usage('default')], [0, 0])
  assert.is(limiter.rule.limit, 2)
  limiter.update('default', { limit: 3 })
  assert.is(limiter.check('default').limit, 3)
  assert.is((await limiter.checkAsync('a')).limit, 10)
})

test('handles and packed keys know their text', async () => {
  const { limiter, config } = limiterWith({ 'user:*': { limit: 3, window: '1m' } })
  const handle = limiter.handle('user:1')
  assert.is(limiter.check(handle).limit, 3)
  assert.is(limiter.check(handle).remaining, 1)
  assert.is(limiter.usage(handle), 2)
  await config.put('user:1', { limit: 9, window: '1h' })
  assert.equal([limiter.check(handle).limit, limiter.usage('user:1')], [9, 3])
  const packed = limiter.pack(['user:2', handle, 'x'])
  const batch = limiter.checkMany(packed, [3, 1, 3], { remaining: true })
  assert.equal([...batch.allowed], [1, 1, 0])
  assert.equal([...batch.remaining!], [0, 5, 2])
  assert.equal([batch.retryAfterMs(0), batch.retryAfterMs(2)], [0, Number.POSITIVE_INFINITY])
  const others = limiterWith().limiter
  assertRaises(() => others.check(handle), 'ERR_MILLRACE_FOREIGN_HANDLE', 'key')
  assertRaises(() => others.refund(limiter.check('z')), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
})

test('a batch is decided in order, also the same key twice, and charges nothing if an argument is wrong', () => {
  const { limiter } = limiterWith({ a: { limit: 3, window: '1h' } })
  assert.equal([...limiter.checkMany(['a', 'b', 'a', 'b', 'a', 'b', 'a']).allowed], [1, 1, 1, 1, 1, 0, 0])
  assertRaises(() => limiter.checkMany(['c', ''], 1), 'ERR_MILLRACE_INVALID_KEY', 'keys[1]')
  assertRaises(() => limiter.checkMany(['c', 'd'], [1, -1]), 'ERR_MILLRACE_INVALID_COST', 'costs[1]')
  assert.is(limiter.usage('c'), 0)
  assert.is(limiter.checkMany([]).length, 0)
})

test('bad options are refused by name', () => {
  const config = memoryConfig()
  const wrong = (options: object, option: string, code = 'ERR_MILLRACE_INVALID_OPTION') =>
    assertRaises(
      () => createLimiter({ config, default: DEFAULT, ...options } as never),
      code as never,
      option,
    )
  wrong({ config: {} }, 'config')
  wrong({ default: undefined }, 'default')
  wrong({ default: { limit: 0, window: '1m' } }, 'default.limit', 'ERR_MILLRACE_INVALID_RULE')
  wrong({ limit: 5 }, 'limit')
  wrong({ rules: [] }, 'rules')
  wrong({ onMiss: 'open' }, 'onMiss')
  wrong({ maxWindows: 65 }, 'maxWindows')
  wrong({ onConfigError: 5 }, 'onConfigError')
  wrong({ configCache: { ttl: 0 } }, 'configCache.ttl', 'ERR_MILLRACE_INVALID_DURATION')
  wrong({ configCache: { size: 1 } }, 'configCache')
  wrong({ configs: 1 }, 'options')
  assertRaises(
    () => createLimiter({ limit: 1, window: '1m', onMiss: 'default' } as never),
    'ERR_MILLRACE_INVALID_OPTION',
    'onMiss',
  )
})

test('update changes the window of the default, and policies keep theirs, in each thread at once', async () => {
  const { limiter, config, clock } = limiterWith()
  await config.put('own', { ...DEFAULT, limit: 7 })
  const other = attachLimiter(limiter.share(), { config })
  for (const each of [limiter, other]) for (const key of ['own', 'none']) assert.ok(each.check(key).allowed)
  limiter.update('default', { window: '1h' })
  const policyHolds = other.check('own')
  assert.equal([policyHolds.remaining, policyHolds.limit], [4, 7])
  for (const each of [limiter, other]) {
    assert.equal([each.rule.windowMs, each.peek('none', 0).remaining], [3_600_000, 0])
    assert.is(each.usage('own'), 3)
  }
  clock.advance(2 * 61_000)
  assert.equal([limiter.usage('own'), other.usage('own'), other.usage('none')], [0, 0, 2])
  await config.delete('own')
  assert.is(other.rule.windowMs, 3_600_000)
  limiter.update('default', { window: '1m' })
  assert.is(other.peek('none', 0).limit, 2)
})

test('a closed limiter is closed, and the store is not', async () => {
  const { limiter, config } = limiterWith()
  limiter.check('a')
  await limiter.close()
  await limiter.close()
  assertRaises(() => limiter.check('a'), 'ERR_MILLRACE_CLOSED', 'limiter')
  await config.put('a', DEFAULT)
})

test.run()
