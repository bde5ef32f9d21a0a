import type { Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects } from '../limiter/support.js'
import { poll } from '../redis/poll.js'
import { limiterWith } from './configured.js'
import { down, FakeStore, stored } from './fake-store.js'

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
  assert.is(limiter.usage('a'), 6, 'four of its own, and two that the default admitted')
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

test('checkAsync and wait go by the answer that they waited for, also if it has made room for others', async () => {
  const store = new FakeStore()
  const { limiter } = limiterWith({}, { config: store, configCache: { maxKeys: 2 } })
  const rules = (limit: number): Policy => ({
    rules: [
      { name: 's', limit, window: '1s' },
      { name: 'm', limit: 100 + limit, window: '1m' },
    ],
  })
  const checks = Array.from({ length: 20 }, (_, i) => limiter.checkAsync(`c${i}`))
  const waits = Array.from({ length: 20 }, (_, i) => limiter.wait(`w${i}`))
  while (store.questions.length > 0) {
    const { keys, answer } = store.questions.shift()!
    answer(stored(keys[0]!, rules(Number(keys[0]!.slice(1)) + 1)))
  }
  for (const decisions of [await Promise.all(checks), await Promise.all(waits)]) {
    assert.equal(
      decisions.map(({ rules }) => rules.map(({ limit }) => limit)),
      Array.from({ length: 20 }, (_, i) => [i + 1, 101 + i]),
    )
  }
})

test('a change of a key that no limiter has ends nothing', () => {
  const store = new FakeStore()
  const { limiter } = limiterWith({}, { config: store })
  store.tell(['', 'x'.repeat(70_000)])
  assert.is(limiter.check('a').limit, 2)
})

test('checkAsync refuses bad arguments by name, also of a key whose policy is not known', async () => {
  const { limiter } = limiterWith({}, { config: new FakeStore(), onMiss: 'refuse' })
  await assertRejects(() => limiter.checkAsync('a', -1), 'ERR_MILLRACE_INVALID_COST', 'cost')
  await assertRejects(() => limiter.checkAsync('', 1), 'ERR_MILLRACE_INVALID_KEY', 'key')
  await assertRejects(
    () => limiter.checkAsync('a', 1, { limits: 5 } as never),
    'ERR_MILLRACE_INVALID_OPTION',
    'options',
  )
})

test.run()
