// run: modules
import { mock } from 'node:test'
import type { MillraceError } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ConfigStore, StoredPolicy } from '#millrace/config/config-store.js'
import { type CacheSettings, PolicyCache } from '#millrace/policies/cache.js'
import { UNKNOWN } from '#millrace/policies/plan.js'
import { down, FakeStore, stored, turn } from './fake-store.js'

const SETTINGS: CacheSettings = { maxKeys: 100, ttlMs: 1_000, maxStaleMs: 5_000, deadlineMs: 50 }
const PLAN = 7
const NONE = 0

/** A cache on a clock of its own. Plans are limits; keys without a policy have plan 0. */
function cacheOn<S extends ConfigStore>(store: S, settings: Partial<CacheSettings> = {}) {
  const seen = {
    errors: [] as MillraceError[],
    moves: [] as unknown[][],
    drops: [] as unknown[],
    displaced: [] as string[],
  }
  const clock = { ms: 10_000 }
  const user = {
    planOf: (found: StoredPolicy | undefined) => ({
      plan: found === undefined ? NONE : (found.policy as { limit: number }).limit,
      found,
    }),
    moved: (...move: unknown[]) => void seen.moves.push(move),
    dropped: (keys: unknown) => void seen.drops.push(keys),
    displaced: (key: string) => void seen.displaced.push(key),
    failed: (error: MillraceError) => void seen.errors.push(error),
  }
  const cache = new PolicyCache(store, { ...SETTINGS, ...settings }, user, () => clock.ms)
  const pass = (ms: number) => {
    clock.ms += ms
    cache.tick()
  }
  return { store, cache, seen, clock, pass }
}

const policy = (limit = PLAN, version = 1) => stored('a', { limit, window: '1m' }, version)

test('one load however many ask, and an answer for all', async () => {
  const { cache, store, seen } = cacheOn(new FakeStore())
  assert.is(cache.peek('user:a').plan, UNKNOWN)
  const all = [cache.get('user:a'), cache.get('user:a'), cache.get('user:a')]
  assert.equal(store.asked, [['user:a', 'user:*']])
  await store.answer(policy())
  assert.equal(
    (await Promise.all(all)).map(({ plan }) => plan),
    [PLAN, PLAN, PLAN],
  )
  assert.is(cache.peek('user:a').plan, PLAN)
  assert.is(store.asked.length, 1)
  assert.equal(seen.moves, [['user:a', UNKNOWN, PLAN]])
  cache.close()
})

test('a key without a policy is remembered, too', async () => {
  const { cache, store } = cacheOn(new FakeStore())
  cache.peek('a')
  await store.answer(undefined)
  assert.is(cache.peek('a').plan, NONE)
  assert.is(store.asked.length, 1)
  cache.close()
})

test('after its time a policy is read again, and used until the answer', async () => {
  const { cache, store, pass } = cacheOn(new FakeStore())
  cache.peek('a')
  await store.answer(policy())
  pass(799)
  cache.peek('a')
  assert.is(store.asked.length, 1, 'no TTL is shortened by more than a fifth')
  pass(202)
  assert.is(cache.peek('a').plan, PLAN)
  assert.is(cache.peek('a').plan, PLAN)
  assert.is(store.asked.length, 2)
  await store.answer(policy(8, 2))
  assert.is(cache.peek('a').plan, 8)
  assert.is(cache.statistics.stale, 2)
  cache.close()
})

test('TTLs differ, so that keys that came together do not expire together', async () => {
  const { cache, store, pass } = cacheOn(new FakeStore(), { maxKeys: 300 })
  for (let i = 0; i < 200; i++) cache.peek(`k${i}`)
  while (store.questions.length > 0) store.questions.shift()!.answer(policy())
  await turn()
  pass(900)
  for (let i = 0; i < 200; i++) cache.peek(`k${i}`)
  const again = store.asked.length - 200
  assert.ok(again > 50 && again < 150, `${again} of 200 after 0.9 TTL`)
  cache.close()
})

test('while the store is down a policy holds, up to maxStale; then it is unknown', async () => {
  const { cache, store, seen, pass } = cacheOn(new FakeStore())
  cache.peek('a')
  await store.answer(policy())
  pass(1_001)
  assert.is(cache.peek('a').plan, PLAN)
  await store.fail()
  assert.is(seen.errors[0]?.code, 'ERR_MILLRACE_CONFIG_STORE')
  assert.is(cache.peek('a').plan, PLAN)
  assert.is(store.questions.length, 0, 'it is not asked again at once')
  pass(101)
  cache.peek('a')
  await store.fail()
  pass(4_900)
  assert.is(cache.peek('a').plan, UNKNOWN)
  await store.answer(policy(9, 2))
  assert.is(cache.peek('a').plan, 9)
  assert.equal(seen.moves.at(-1), ['a', UNKNOWN, 9], 'it may have counted by another plan meanwhile')
  cache.close()
})

test('the deadline ends the wait, and a late answer is used', async () => {
  const { cache, store, seen } = cacheOn(new FakeStore(), { deadlineMs: 1 })
  const { plan } = await cache.get('a')
  assert.is(plan, UNKNOWN)
  assert.match(seen.errors[0]!.message, /an answer within 1 ms/)
  await store.answer(policy())
  assert.is(cache.peek('a').plan, PLAN)
  cache.close()
})

test('a change is read again at once, also one that comes during a read', async () => {
  const { cache, store, seen } = cacheOn(new FakeStore())
  cache.peek('a')
  store.tell(['a'])
  await store.answer(policy(1, 1))
  assert.is(store.questions.length, 1, 'the answer may be from before the change')
  await store.answer(policy(2, 2))
  assert.is(cache.peek('a').plan, 2)
  store.tell(['a'])
  assert.is(store.questions.length, 1, 'before anybody asks')
  assert.is(cache.peek('a').plan, 2)
  await store.answer(policy(3, 3))
  assert.is(cache.peek('a').plan, 3)
  assert.equal(seen.drops, [['a'], ['a']])
  cache.close()
})

test('a change of a prefix lets all keys under it be read again, and no others', async () => {
  const { cache, store } = cacheOn(new FakeStore())
  for (const key of ['user:1', 'user:2', 'users']) {
    cache.peek(key)
    await store.answer(policy())
  }
  store.tell(['user:*'])
  for (const key of ['user:1', 'user:2', 'users']) assert.is(cache.peek(key).plan, PLAN)
  assert.equal(
    store.questions.map(({ keys }) => keys[0]),
    ['user:2', 'user:1'],
    'at once, the last used first',
  )
  cache.close()
})

test('lost messages: everything is read again on use', async () => {
  const { cache, store, seen } = cacheOn(new FakeStore())
  cache.peek('a')
  await store.answer(policy())
  store.tell()
  assert.is(store.questions.length, 0)
  assert.is(cache.peek('a').plan, PLAN)
  assert.is(store.questions.length, 1)
  assert.equal(seen.drops, [undefined])
  cache.close()
})

test('an answer that is older than what is known changes nothing', async () => {
  const { cache, store } = cacheOn(new FakeStore())
  cache.peek('a')
  await store.answer(policy(2, 20))
  store.tell(['a'])
  await store.answer(policy(1, 10))
  assert.is(cache.peek('a').plan, 2)
  cache.close()
})

test('garbage: what is known goes on, and the error is told', async () => {
  const store = memoryConfig({ a: { limit: PLAN, window: '1m' } })
  const { cache, seen, pass } = cacheOn(store)
  assert.is(cache.peek('a').plan, PLAN)
  const find = store.findNow
  store.findNow = () => {
    throw down()
  }
  pass(1_001)
  assert.is(cache.peek('a').plan, UNKNOWN + 1 + PLAN)
  assert.is(seen.errors.length, 1)
  assert.is(cache.peek('new').plan, UNKNOWN)
  store.findNow = find
  pass(101)
  assert.is(cache.peek('new').plan, NONE)
  cache.close()
})

test('a store that throws where it should reject is an error that is told', async () => {
  const store = new FakeStore()
  store.find = () => {
    throw new TypeError('a bug')
  }
  const { cache, seen } = cacheOn(store)
  assert.is((await cache.get('a')).plan, UNKNOWN)
  assert.match(seen.errors[0]!.message, /a bug/)
  cache.close()
})

test('it keeps the keys that are used, and no more than maxKeys', async () => {
  const store = memoryConfig()
  const { cache, pass } = cacheOn(store, { maxKeys: 10 })
  for (let i = 0; i < 10; i++) cache.peek(`k${i}`)
  pass(200)
  cache.peek('k0')
  for (let i = 10; i < 19; i++) cache.peek(`k${i}`)
  assert.is(cache.size, 10)
  const { loads } = cache.statistics
  cache.peek('k0')
  assert.is(cache.statistics.loads, loads)
  cache.close()
})

test('long keys have the policies of prefixes', () => {
  const store = memoryConfig({ 'user:*': { limit: PLAN, window: '1m' } })
  const { cache } = cacheOn(store)
  assert.is(cache.peek(`user:${'x'.repeat(60_000)}`).plan, PLAN)
  assert.is(cache.peek(`user:${'x'.repeat(60_001)}`).plan, PLAN)
  assert.is(cache.size, 1)
  cache.close()
})

test('an older state that is restored holds after a second answer', async () => {
  const { cache, store, pass } = cacheOn(new FakeStore())
  cache.peek('a')
  await store.answer(policy(2, 20))
  pass(1_001)
  cache.peek('a')
  await store.answer(policy(1, 10))
  assert.is(cache.peek('a').plan, 2)
  pass(101)
  cache.peek('a')
  await store.answer(policy(1, 10))
  assert.is(cache.peek('a').plan, 1)
  cache.close()
})

test('a synchronous store may go back to an older version at once', () => {
  const store = memoryConfig()
  const { cache, pass } = cacheOn(store)
  store.findNow = () => policy(2, 20)
  assert.is(cache.peek('a').plan, 2)
  store.findNow = () => policy(1, 10)
  pass(1_001)
  assert.is(cache.peek('a').plan, 1)
  cache.close()
})

test('a plan that can not be made is told, and ends nothing', async () => {
  const store = new FakeStore()
  const errors: unknown[] = []
  const user = {
    planOf: () => {
      throw new RangeError('no plan')
    },
    moved: () => {},
    dropped: () => {},
    displaced: () => {},
    failed: (error: unknown) => void errors.push(error),
  }
  const cache = new PolicyCache(store, SETTINGS, user)
  assert.is(cache.peek('a').plan, UNKNOWN)
  await store.answer(policy())
  assert.is(cache.peek('a').plan, UNKNOWN)
  assert.match(String(errors[0]), /no plan/)
  cache.close()
})

test('a read that hangs is given up, also if the policy changed meanwhile, and its late answer is void', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const { cache, store } = cacheOn(new FakeStore())
    cache.peek('a')
    const hung = store.questions.shift()!
    store.tell(['a'])
    mock.timers.tick(2_000)
    cache.peek('a')
    assert.is(store.questions.length, 1, 'the change is read, as the first read was given up')
    await store.answer(policy(2, 2))
    assert.is(cache.peek('a').plan, 2)
    hung.answer(policy(1, 1))
    await turn()
    assert.is(cache.peek('a').plan, 2)
    store.tell(['a'])
    await store.answer(policy(3, 3))
    assert.is(cache.peek('a').plan, 3)
    cache.close()
  } finally {
    mock.timers.reset()
  }
})

test('keys without an answer do not displace those that are known', async () => {
  const { cache, store } = cacheOn(new FakeStore(), { maxKeys: 10 })
  cache.peek('known')
  await store.answer(policy())
  for (let i = 0; i < 100; i++) cache.peek(`invented ${i}`)
  assert.is(cache.peek('known').plan, PLAN)
  cache.close()
})

test('a failed read is tried again after a tenth of a second, however long the TTL, and once the store is back', async () => {
  const { cache, store, clock } = cacheOn(new FakeStore(), { ttlMs: 86_400_000 })
  cache.peek('a')
  await store.fail()
  cache.peek('a')
  assert.is(store.questions.length, 0)
  clock.ms += 101 // no tick
  cache.peek('a')
  assert.is(store.questions.length, 1)
  await store.fail()
  store.tell()
  cache.peek('a')
  assert.is(store.questions.length, 1)
  cache.close()
})

test('a change of many prefixes lets everything be read again', async () => {
  const { cache, store } = cacheOn(new FakeStore())
  cache.peek('b:1')
  await store.answer(policy())
  store.tell(['a:*', 'b:*'])
  cache.peek('b:1')
  assert.is(store.questions.length, 1)
  cache.close()
})

test('after close nothing is told any more', async () => {
  const { cache, store, seen } = cacheOn(new FakeStore())
  cache.peek('a')
  cache.close()
  assert.is(store.listeners.size, 0)
  await store.fail()
  assert.equal([seen.errors, seen.moves], [[], []])
})

test('a prefix that changes while its keys are read for the first time: they are read again', async () => {
  const { cache, store } = cacheOn(new FakeStore())
  cache.peek('user:a')
  store.tell(['user:*'])
  await store.answer(policy())
  assert.equal(store.asked, [
    ['user:a', 'user:*'],
    ['user:a', 'user:*'],
  ])
  await store.answer(policy(8, 2))
  assert.is(cache.peek('user:a').plan, 8)
  cache.close()
})

test('after the change of a prefix of many keys a thousand are read at once, the others on use', async () => {
  const { cache, store } = cacheOn(new FakeStore(), { maxKeys: 2_000 })
  for (let i = 0; i < 1_200; i++) cache.peek(`user:${i}`)
  while (store.questions.length > 0) store.questions.shift()!.answer(policy())
  await turn()
  store.tell(['user:*'])
  assert.is(store.questions.length, 1_000)
  for (let i = 0; i < 1_200; i++) assert.is(cache.peek(`user:${i}`).plan, PLAN)
  assert.is(store.questions.length, 1_200)
  cache.close()
})

test('a key that has made room for others while it is read is read once, and its changes count', async () => {
  const { cache, store, seen } = cacheOn(new FakeStore(), { maxKeys: 1 })
  cache.peek('a')
  cache.peek('b') // `a` makes room
  cache.peek('a')
  assert.equal(store.asked, [['a'], ['b']])
  store.tell(['a'])
  await store.answer(policy())
  assert.equal(store.asked, [['a'], ['b'], ['a']], 'the answer may be older than the change')
  await store.answer(policy())
  assert.equal(seen.displaced, ['a'])
  await store.answer(policy(8, 2))
  assert.equal(seen.displaced, ['a', 'b'])
  assert.is(cache.peek('a').plan, 8)
  cache.close()
  assert.equal(seen.displaced, ['a', 'b'], 'nobody asks for links any more')
})

test('changes of keys that have no policy are passed over', () => {
  const { cache, store, seen } = cacheOn(new FakeStore())
  store.tell(['', 'a\0', 'x'.repeat(70_000), 'a'])
  assert.equal(seen.drops, [['a']])
  cache.close()
})

test.run()
