import { createLimiter, type MillraceError, manualClock, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects } from '../limiter/support.js'
import { poll } from '../redis/poll.js'
import { down, FakeStore, stored } from './fake-store.js'

const DEFAULT: Policy = { limit: 2, window: '1m' }

function limiterWith(policies: Record<string, Policy> = {}, options: object = {}) {
  const clock = manualClock(1_000_000)
  const config = memoryConfig(policies)
  const errors: MillraceError[] = []
  const limiter = createLimiter({
    config,
    default: DEFAULT,
    clock,
    maxKeys: 1_000,
    onConfigError: (error) => void errors.push(error),
    ...options,
  })
  const admitted = (key: string) => {
    let count = 0
    while (limiter.check(key).allowed) count++
    return count
  }
  return { limiter, config, clock, errors, admitted }
}

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

test('a changed window counts what the key has used, and its block', async () => {
  const { limiter, config, clock, admitted } = limiterWith({ a: { limit: 5, window: '1m' } })
  assert.is(admitted('a'), 5)
  limiter.block('b', '10m')
  await config.put('a', { limit: 7, window: '1h' })
  await config.put('b', { limit: 7, window: '1h' })
  assert.is(admitted('a'), 2)
  assert.is(limiter.usage('a'), 7)
  assert.is(admitted('b'), 0)
  clock.advance(10 * 60_000)
  assert.is(admitted('b'), 7)
  await config.put('a', { limit: 100, window: '10s' })
  assert.is(limiter.usage('a'), 0, 'of the last ten seconds it used nothing')
  await config.put('a', {
    rules: [
      { name: 'm', limit: 50, window: '1m' },
      { name: 'h', limit: 9, window: '1h' },
    ],
  })
  assert.is(admitted('a'), 2, 'the hour knows of seven')
})

test('policies that differ in their limits have one window, as has the default', async () => {
  const { limiter, config } = limiterWith()
  for (let i = 1; i <= 100; i++) await config.put(`k${i}`, { limit: i, window: 60_000 })
  for (let i = 1; i <= 100; i++) assert.is(limiter.check(`k${i}`).limit, i)
  assert.is(limiter.stats().config?.windows, 1)
  await config.put('other', { limit: 1, window: '1h' })
  limiter.check('other')
  assert.is(limiter.stats().config?.windows, 2)
  assert.is(limiter.stats().allowed, 101)
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

test('a policy that does not fit is refused at put; one of others falls to the default, counted and told', async () => {
  const { limiter, config, errors } = limiterWith({}, { maxWindows: 2 })
  await config.put('a', { limit: 5, window: '1h' })
  assert.is(limiter.check('a').limit, 5)
  await assertRejects(
    () => config.put('b', { limit: 5, window: '2h' }),
    'ERR_MILLRACE_POLICY_TOO_LARGE',
    'policy',
  )
  assert.is(await config.get('b'), undefined)
  await config.put('b', { limit: 6, window: '1h' })
  const fine = { limit: 5, window: '1h', granularity: '100ms' } as const
  await assertRejects(() => config.put('c', fine), 'ERR_MILLRACE_POLICY_TOO_LARGE', 'policy')

  const other = memoryConfig({ user: { limit: 50, window: '2h' } })
  const open = limiterWith(
    {},
    { config: other, maxWindows: 1, onConfigError: (error: MillraceError) => errors.push(error) },
  )
  assert.is(open.limiter.check('user').limit, 2)
  assert.equal([errors.at(-1)?.code, errors.at(-1)?.option], ['ERR_MILLRACE_POLICY_TOO_LARGE', 'user'])
  assert.is(open.limiter.stats().config?.unfit, 1)
  await limiter.close()
  await config.put('b', { limit: 5, window: '2h' }) // nobody objects any more
})

test('a fine granularity is refused for its size', async () => {
  const { config } = limiterWith({}, { maxKeys: 100_000, maxWindows: 3 })
  await config.put('ok', { limit: 5, window: '1h', granularity: '30s' })
  const tooFine = { limit: 5, window: '1h', granularity: '1s' } as const
  await assertRejects(() => config.put('fine', tooFine), 'ERR_MILLRACE_POLICY_TOO_LARGE', 'policy')
})

test('a store by promises: the default at first sight, and the policy once it is known, with what was used', async () => {
  const store = new FakeStore()
  const { limiter } = limiterWith({}, { config: store })
  assert.is(limiter.check('a').limit, 2)
  assert.is(limiter.check('a').remaining, 0)
  assert.equal(store.asked, [['a']])
  await store.answer(stored('a', { limit: 5, window: '1h' }))
  const decision = limiter.check('a')
  assert.equal([decision.limit, decision.remaining], [5, 2])
})

test("onMiss: 'refuse' charges nothing and says that it was the store", async () => {
  const store = new FakeStore()
  const { limiter } = limiterWith({}, { config: store, onMiss: 'refuse' })
  const refused = limiter.check('a')
  assert.equal([refused.allowed, refused.source, refused.retryAfterMs], [false, 'config', 50])
  assert.is(limiter.peek('a').source, 'config')
  const batch = limiter.checkMany(['a', 'b'])
  assert.equal([[...batch.allowed], batch.source(0)], [[0, 0], 'config'])
  assert.is(limiter.refund(refused), 0)
  await store.answer(stored('a', { limit: 5, window: '1m' }))
  assert.equal([limiter.check('a').remaining, limiter.check('a').source], [4, undefined])
})

test('checkAsync waits for the policy, and goes on without it if the store is slow or down', async () => {
  const store = new FakeStore()
  const { limiter, errors } = limiterWith({}, { config: store, configCache: { deadline: 1 } })
  const first = limiter.checkAsync('a')
  await store.answer(stored('a', { limit: 5, window: '1m' }))
  assert.is((await first).limit, 5)
  assert.is((await limiter.checkAsync('slow')).limit, 2)
  assert.is(errors.at(-1)?.code, 'ERR_MILLRACE_CONFIG_STORE')
  const failed = limiter.checkAsync('down')
  store.questions.pop()!.fail(down())
  assert.is((await failed).limit, 2)
})

test('many plans: those that may not be in use are forgotten, and all limits stay right', async () => {
  const { limiter, config } = limiterWith({}, { configCache: { maxKeys: 10 } })
  const rules = (i: number): Policy => ({
    rules: [
      { name: 's', limit: i, window: '1s' },
      { name: 'm', limit: 1_000 + i, window: '1m' },
    ],
  })
  for (let i = 1; i <= 200; i++) {
    await config.put(`k${i}`, rules(i))
    for (const j of [i, Math.max(1, i - 5)]) {
      const { rules: parts } = limiter.check(`k${j}`, 0)
      assert.equal(
        parts.map(({ limit }) => limit),
        [j, 1_000 + j],
      )
    }
  }
})

test('a policy that no memory has room for is refused at put, and one of others is told, and ends nothing', async () => {
  const huge: Policy = { limit: 5, window: '3h', granularity: '500ms' }
  const { config, limiter } = limiterWith({}, { maxKeys: 100_000 })
  await assertRejects(() => config.put('a', huge), 'ERR_MILLRACE_POLICY_TOO_LARGE', 'policy')
  assert.is(limiter.check('a').limit, 2)
  const store = new FakeStore()
  const open = limiterWith({}, { config: store, maxKeys: 100_000 })
  open.limiter.check('a')
  await store.answer(stored('a', huge))
  assert.is(open.limiter.check('a').limit, 2)
  assert.is(open.errors.at(-1)?.code, 'ERR_MILLRACE_POLICY_TOO_LARGE')
})

test('put promises no more windows than there are', async () => {
  const { config } = limiterWith({}, { maxWindows: 2 })
  await config.put('a', { limit: 5, window: '1h' })
  await assertRejects(
    () => config.put('b', { limit: 5, window: '2h' }),
    'ERR_MILLRACE_POLICY_TOO_LARGE',
    'policy',
  )
})

test('a batch decides each key by its own limits, also if plans are forgotten in the middle', async () => {
  const policies = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [
      `k${i}`,
      {
        rules: [
          { name: 's', limit: i + 1, window: '1s' },
          { name: 'm', limit: 1_000, window: '1m' },
        ],
      } satisfies Policy,
    ]),
  )
  const { limiter } = limiterWith(policies, { configCache: { maxKeys: 5 } })
  const keys = Object.keys(policies)
  const batch = limiter.checkMany(keys, 1, { remaining: true })
  assert.equal(
    [...batch.remaining!],
    keys.map((_, i) => i),
  )
})

test('a long key carries what it has used into another window', async () => {
  const { config, limiter, admitted } = limiterWith({ 'user:*': { limit: 5, window: '1m' } })
  const long = `user:${'x'.repeat(600)}`
  assert.is(admitted(long), 5)
  await config.put('user:*', { limit: 5, window: '1h' })
  assert.is(admitted(long), 0)
  assert.is(limiter.check(`${long}y`).allowed, true)
})

test('what was used by the default in a long outage counts when the policy is back', async () => {
  const store = memoryConfig({ a: { limit: 10, window: '1h' } })
  const { limiter } = limiterWith({}, { config: store, configCache: { ttl: 1, maxStale: 0 } })
  limiter.check('a', 4)
  const find = store.findNow
  store.findNow = () => {
    throw down()
  }
  await poll(() => limiter.peek('a', 0).limit === 2, 'the end of the known policy')
  limiter.check('a', 2)
  store.findNow = find
  await poll(() => limiter.peek('a', 0).limit === 10, 'the policy')
  assert.is(limiter.usage('a'), 4, 'the hour knows of four, two of which it did not see')
})

test("onMiss: 'refuse' holds for reserve and wait, too", async () => {
  const { limiter } = limiterWith(
    {},
    { config: new FakeStore(), onMiss: 'refuse', configCache: { deadline: 1 } },
  )
  const reservation = limiter.reserve('a', 1)
  const { allowed, source } = reservation.decision
  assert.equal([allowed, source], [false, 'config'])
  assertRaises(() => reservation.commit(), 'ERR_MILLRACE_NOT_RESERVED', 'reservation')
  await assertRejects(() => limiter.wait('a'), 'ERR_MILLRACE_CONFIG_STORE', 'key')
})

test('a policy like a default that is a bucket has a limiter of its own', async () => {
  const bucket: Policy = { limit: 5, window: '1m', algorithm: 'token-bucket' }
  const { config, limiter } = limiterWith({}, { default: bucket })
  await config.put('a', bucket)
  limiter.update('default', { limit: 7 })
  assert.equal([limiter.check('a').limit, limiter.check('b').limit], [5, 7])
})

test('an onConfigError that throws ends nothing', async () => {
  const store = new FakeStore()
  const { limiter } = limiterWith(
    {},
    {
      config: store,
      onConfigError: () => {
        throw new Error('of the user')
      },
    },
  )
  limiter.check('a')
  await store.fail()
  assert.is(limiter.check('a').limit, 2)
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
  const { limiter } = limiterWith()
  assertRaises(
    () => limiter.update('default', { window: '1h' }),
    'ERR_MILLRACE_INVALID_OPTION',
    'change.window',
  )
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
