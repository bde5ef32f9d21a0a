// Wrong arguments and failures in groups: each has an error that names it, and nothing stays charged.
import { inspect } from 'node:util'
import { MessageChannel, Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, group, type LimiterGroup, MillraceError, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects, settled } from './support.js'

const KEYS = { account: 'alice', address: 'home' }

function logins(clock: { now(): number } = manualClock(0)) {
  const make = (name: string) => createLimiter({ name, limit: 5, window: '1m', maxKeys: 20, clock })
  const byAccount = make('account')
  const byAddress = make('address')
  const both = group({ account: byAccount, address: byAddress })
  return { byAccount, byAddress, both, used: () => [byAccount.usage('alice'), byAddress.usage('home')] }
}

/** Every method that takes keys. */
const CALLS: readonly ((both: LimiterGroup, keys: never, cost?: never, options?: never) => unknown)[] = [
  (both, keys, cost, options) => both.check(keys, cost, options),
  (both, keys, cost, options) => both.checkOrThrow(keys, cost, options),
  (both, keys, cost, options) => both.peek(keys, cost, options),
  (both, keys, cost = 1 as never, options) => both.reserve(keys, cost, options),
]

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}

test('members that are not an object with limiters are refused', () => {
  const { byAccount, both } = logins()
  for (const members of [undefined, null, 5, 'account', [], [byAccount], {}, () => {}]) {
    assertRaises(() => group(members as never), 'ERR_MILLRACE_INVALID_OPTION', 'members', inspect(members))
  }
  for (const value of [undefined, null, 5, {}, both, createLimiter, Object.create(null), manualClock()]) {
    const act = () => group({ account: byAccount, address: value } as never)
    assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'members.address', inspect(value))
  }
})

test('a limiter given twice is refused, and the error names the first member', () => {
  const { byAccount, byAddress } = logins()
  const act = () => group({ account: byAccount, address: byAddress, name: byAccount })
  assert.match(assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'members.name').expected, 'members.account')
})

test('each member is read once', () => {
  const { byAccount, byAddress } = logins()
  const reads: string[] = []
  const members = new Proxy(
    { account: byAccount, address: byAddress },
    {
      get: (target, name) => {
        reads.push(String(name))
        return Reflect.get(target, name)
      },
    },
  )
  group(members)
  assert.equal(reads, ['account', 'address'])
})

test('a closed limiter is refused as a member', async () => {
  const { byAccount, byAddress } = logins()
  await byAddress.close()
  const act = () => group({ account: byAccount, address: byAddress })
  assertRaises(act, 'ERR_MILLRACE_CLOSED', 'members.address')
})

test('keys that are not an object, lack a member, or have an unknown one are refused', async () => {
  const { both, used } = logins()
  const wrong: [keys: unknown, option: string][] = [
    [undefined, 'keys'],
    [null, 'keys'],
    ['alice', 'keys'],
    [{ ...KEYS, device: 'phone' }, 'keys'],
    [['alice', 'home'], 'keys'],
    [{}, 'keys.account'],
    [{ account: 'alice' }, 'keys.address'],
    [{ ...KEYS, address: undefined }, 'keys.address'],
    [{ ...KEYS, address: '' }, 'keys.address'],
    [{ ...KEYS, address: 5 }, 'keys.address'],
    [{ ...KEYS, account: 'x'.repeat(65_537) }, 'keys.account'],
  ]
  for (const [keys, option] of wrong) {
    for (const call of CALLS) {
      assertRaises(() => call(both, keys as never), 'ERR_MILLRACE_INVALID_KEY', option, inspect(keys))
    }
    await assertRejects(() => both.wait(keys as never), 'ERR_MILLRACE_INVALID_KEY', option)
  }
  const { expected } = assertRaises(
    () => both.check({ ...KEYS, device: 'phone' } as never),
    'ERR_MILLRACE_INVALID_KEY',
    'keys',
  )
  assert.match(expected, 'only account, address')
  assert.equal(used(), [0, 0])
})

test('each key is read once', () => {
  const { both } = logins()
  const reads: string[] = []
  const keys = new Proxy(KEYS, {
    get: (target, name) => {
      reads.push(String(name))
      return Reflect.get(target, name)
    },
  })
  both.check(keys)
  assert.equal(reads, ['account', 'address'])
})

test('wrong costs and options are refused', async () => {
  const { both, used } = logins()
  for (const cost of [-1, 0.5, Number.NaN, '1', null]) {
    for (const call of CALLS) {
      assertRaises(() => call(both, KEYS as never, cost as never), 'ERR_MILLRACE_INVALID_COST', 'cost')
    }
    await assertRejects(() => both.wait(KEYS, { cost: cost as never }), 'ERR_MILLRACE_INVALID_COST', 'cost')
  }
  assertRaises(() => both.reserve(KEYS, undefined as never), 'ERR_MILLRACE_INVALID_COST', 'cost')
  const wrong: [options: unknown, option: string][] = [
    [null, 'options'],
    [5, 'options'],
    [{ limits: {} }, 'options'],
    [{ limit: 5 }, 'limit'],
    [{ limit: null }, 'limit'],
    [{ limit: { device: 5 } }, 'limit'],
    [{ limit: { account: -1 } }, 'limit.account'],
    [{ limit: { address: { default: 5 } } }, 'limit.address'],
  ]
  for (const [options, option] of wrong) {
    for (const call of CALLS) {
      const act = () => call(both, KEYS as never, 1 as never, options as never)
      assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', option, inspect(options))
    }
    await assertRejects(() => both.wait(KEYS, options as never), 'ERR_MILLRACE_INVALID_OPTION', option)
  }
  await assertRejects(() => both.wait(KEYS, { signal: {} as never }), 'ERR_MILLRACE_INVALID_OPTION', 'signal')
  assert.equal(used(), [0, 0])
})

test('a limit for a member with several rules names its rules', () => {
  const rules = [
    { name: 'burst', limit: 2, window: '10s' },
    { name: 'hourly', limit: 6, window: '1h' },
  ]
  const user = group({ user: createLimiter({ rules, maxKeys: 20 }) })
  for (const [limit, option] of [
    [5, 'limit.user'],
    [{ daily: 5 }, 'limit.user'],
    [{ hourly: -1 }, 'limit.user.hourly'],
  ] as const) {
    const act = () => user.check({ user: 'ann' }, 1, { limit: { user: limit as never } })
    assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', option)
  }
})

test('every method of a group with a closed member throws ERR_MILLRACE_CLOSED, and charges nothing', async () => {
  const { both, byAccount, byAddress } = logins()
  const decision = both.check(KEYS, 2)
  const reservation = both.reserve(KEYS, 2)
  await byAddress.close()
  for (const call of CALLS) {
    assertRaises(() => call(both, KEYS as never), 'ERR_MILLRACE_CLOSED', 'members.address')
  }
  await assertRejects(() => both.wait(KEYS), 'ERR_MILLRACE_CLOSED', 'members.address')
  assertRaises(() => both.refund(decision), 'ERR_MILLRACE_CLOSED', 'members.address')
  assertRaises(() => reservation.cancel(), 'ERR_MILLRACE_CLOSED', 'members.address')
  assert.is(byAccount.usage('alice'), 4)
})

test('if a getter of the keys closes a member, no member is charged', () => {
  const { both, byAccount, byAddress } = logins()
  const keys = {
    account: 'alice',
    get address() {
      void byAddress.close()
      return 'home'
    },
  }
  assertRaises(() => both.check(keys), 'ERR_MILLRACE_CLOSED', 'members.address')
  assert.is(byAccount.usage('alice'), 0)
})

test('after a clock fails in any reading, nothing is charged or counted', () => {
  let [nowMs, readings] = [1e6, 0]
  let failAt = Number.POSITIVE_INFINITY
  const clock = { now: () => (++readings >= failAt ? Number.NaN : nowMs) }
  const { both, byAccount, byAddress } = logins(clock)
  let failures = 0
  for (let after = 1; after < 12; after++) {
    nowMs += 120_000
    failAt = readings + after
    const keys = { account: `account ${after}`, address: `address ${after}` }
    const outcome = attempt(() => both.check(keys))
    failAt = Number.POSITIVE_INFINITY
    const used = [byAccount.usage(keys.account), byAddress.usage(keys.address)]
    if (outcome instanceof MillraceError) {
      failures++
      assert.equal([outcome.code, used], ['ERR_MILLRACE_INVALID_CLOCK', [0, 0]], `reading ${after}`)
    } else assert.equal(used, [1, 1])
    assert.equal(
      [byAccount, byAddress].map((each) => each.stats().allowed),
      Array(2).fill(after - failures),
    )
  }
  assert.ok(failures >= 2 && failures < 10, `${failures} failures`)
})

test('if a clock closes the first member while the second decides, nothing stays charged', () => {
  const first = createLimiter({ limit: 5, window: '1m', maxKeys: 20 })
  const attached = attachLimiter(first.share())
  let isArmed = false
  const clock = {
    now: () => {
      if (isArmed) void first.close()
      if (isArmed) throw new Error('stopped')
      return 1e6
    },
  }
  const second = createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock })
  const both = group({ first, second })
  isArmed = true
  assert.match(String(attempt(() => both.check({ first: 'a', second: 'b' }))), 'stopped')
  isArmed = false
  assert.equal([attached.usage('a'), second.usage('b')], [0, 0])
})

test('if a clock fails in a commit, the next commit settles the other members', () => {
  let isBroken = false
  const clock = { now: () => (isBroken ? Number.NaN : 1e6) }
  const byAccount = createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock: manualClock(1e6) })
  const byAddress = createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock })
  const both = group({ account: byAccount, address: byAddress })
  const used = () => [byAccount.usage('alice'), byAddress.usage('home')]
  for (const [actual, changed] of [
    [1, -2],
    [6, 3],
  ] as const) {
    const reservation = both.reserve(KEYS, 3)
    isBroken = true
    assertRaises(() => reservation.commit(actual), 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
    isBroken = false
    assert.equal([byAccount.usage('alice'), byAddress.usage('home')], [actual, 3])
    assert.is(reservation.commit(actual), changed)
    assert.equal(used(), [actual, actual])
    assertRaises(() => reservation.commit(actual), 'ERR_MILLRACE_SETTLED', 'reservation')
    byAccount.clear('alice')
    byAddress.clear('home')
  }
})

test('if a clock fails in a refund, the next refund finishes it', async () => {
  let isBroken = false
  const clock = { now: () => (isBroken ? Number.NaN : 1e6) }
  const byAccount = createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock: manualClock(1e6) })
  const byAddress = createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock })
  const both = group({ account: byAccount, address: byAddress })
  const decision = both.check(KEYS, 3)
  isBroken = true
  assertRaises(() => both.refund(decision), 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
  const { status } = await settled(both.wait(KEYS))
  isBroken = false
  assert.is(status, 'rejected')
  assert.is(both.refund(decision), 3)
  assert.equal([byAccount.usage('alice'), byAddress.usage('home')], [0, 0])
})

test('a group is not shared between threads: sending or copying it throws an error that says what to share', () => {
  const limiter = createLimiter({ limit: 5, window: '1m' })
  const pooled = createLimiter({ limit: 5, window: '1m', engine: 'pool', pool: { maxThreads: 1 } })
  const { port1, port2 } = new MessageChannel()
  for (const both of [group({ limiter }), group({ pooled }), group({ limiter, pooled })]) {
    for (const act of [
      () => structuredClone(both),
      () => structuredClone({ both: [both] }),
      () => port1.postMessage(both),
      () => new Worker('', { eval: true, workerData: both }),
      () => (both as unknown as { share(): unknown }).share(),
    ]) {
      const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'group')
      assert.match(message, 'limiter.share() of each member')
      assert.not.match(message, '=>')
    }
    assertRaises(() => attachLimiter(both as never), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer')
    assert.match(inspect(both), 'members')
    assert.match(JSON.stringify({ both }), '"members":[')
  }
  assert.is(limiter.stats().keys, 0)
  port1.close()
  port2.close()
  return pooled.close()
})

test.run()
