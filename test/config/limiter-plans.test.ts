import type { MillraceError, Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRejects } from '../limiter/support.js'
import { limiterWith } from './configured.js'
import { FakeStore, stored } from './fake-store.js'

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

test('a policy like a default that is a bucket has a limiter of its own', async () => {
  const bucket: Policy = { limit: 5, window: '1m', algorithm: 'token-bucket' }
  const { config, limiter } = limiterWith({}, { default: bucket })
  await config.put('a', bucket)
  limiter.update('default', { limit: 7 })
  assert.equal([limiter.check('a').limit, limiter.check('b').limit], [5, 7])
})

test('a prefix that changes reaches keys that have made room for others in the cache', async () => {
  const { config, limiter } = limiterWith(
    { 'user:*': { limit: 5, window: '1m' } },
    { configCache: { maxKeys: 1 } },
  )
  assert.is(limiter.check('user:a').limit, 5)
  assert.is(limiter.check('user:b').limit, 5)
  await config.put('user:*', { limit: 6, window: '1m' })
  assert.equal([limiter.check('user:a').limit, limiter.check('user:b').limit], [6, 6])
})

test.run()
