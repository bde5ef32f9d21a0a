// run: full
// Groups whose members decide on a pool, alone and together with inline members.
import { inspect } from 'node:util'
import {
  type AsyncLimiter,
  type AsyncLimiterGroup,
  createLimiter,
  group,
  type Limiter,
  type LimiterOptions,
  type ManualClock,
  MillraceLimited,
  manualClock,
} from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, assertRejects, resolved, settled, turn } from './support.js'

const KEYS = { account: 'alice', address: 'home', device: 'phone' }
const MINUTE_MS = 61_000

type Options = Partial<Omit<LimiterOptions, 'engine'>>

/** An inline limiter between two pools, each of 5 in a minute. */
async function logins(use: (made: Made) => Promise<void>, account: Options = {}, device: Options = {}) {
  const clock = manualClock(0)
  const options = { limit: 5, window: '1m', granularity: '1s', maxKeys: 20, clock } as const
  const byAccount = createLimiter({ ...options, ...account, engine: 'pool' })
  const byAddress = createLimiter(options)
  const byDevice = createLimiter({ ...options, ...device, engine: 'pool' })
  const all = group({ account: byAccount, address: byAddress, device: byDevice })
  const used = async () => [
    await byAccount.usage('alice'),
    byAddress.usage('home'),
    await byDevice.usage('phone'),
  ]
  try {
    await use({ clock, byAccount, byAddress, byDevice, all, used })
  } finally {
    await Promise.all([byAccount.close(), byAddress.close(), byDevice.close()])
  }
}

interface Made {
  readonly clock: ManualClock
  readonly byAccount: AsyncLimiter
  readonly byAddress: Limiter
  readonly byDevice: AsyncLimiter
  readonly all: AsyncLimiterGroup<'account' | 'address' | 'device'>
  used(): Promise<number[]>
}

const countsOf = async (limiter: AsyncLimiter) => {
  const { allowed, denied, shadowDenied } = await limiter.stats()
  return [allowed, denied, shadowDenied]
}

test('all members are charged, or no member', () =>
  logins(async ({ all, used, byDevice, byAccount, byAddress }) => {
    const decision = await resolved(all.check(KEYS, 2))
    assert.equal([decision.allowed, decision.remaining, decision.member], [true, 3, 'account'])
    assert.equal(await used(), [2, 2, 2])
    await byDevice.check('phone', 2)
    const refused = await resolved(all.check(KEYS, 2))
    assert.equal([refused.allowed, refused.member, refused.retryAfterMs], [false, 'device', MINUTE_MS])
    assert.equal([refused.members.account.remaining, refused.members.address.allowed], [3, true])
    assert.equal(await used(), [2, 2, 4])
    assert.equal(await Promise.all([refused, refused].map((each) => all.refund(each))), [0, 0])
    assert.is(await byAccount.refund(refused.members.account), 0)
    assert.equal([await all.refund(decision), await all.refund(decision), await used()], [2, 0, [0, 0, 2]])
    assert.equal(await Promise.all([byAccount, byDevice].map(countsOf)), [
      [1, 0, 0],
      [2, 1, 0],
    ])
    assert.is(byAddress.stats().allowed, 1)
    assert.is(inspect(all), "AsyncLimiterGroup { members: [ 'account', 'address', 'device' ] }")
  }))

test('if the first member refuses, no other member is charged', () =>
  logins(async ({ all, used, byAccount }) => {
    await byAccount.check('alice', 5)
    const refused = await resolved(all.check(KEYS))
    assert.equal([refused.member, refused.retryAfterMs, await used()], ['account', MINUTE_MS, [5, 0, 0]])
    assert.equal((await resolved(all.peek(KEYS))).toJSON(), refused.toJSON())
    const [outcome] = await Promise.allSettled([all.checkOrThrow(KEYS)])
    assert.instance((outcome as PromiseRejectedResult).reason, MillraceLimited)
  }))

test('a cost above a limit is refused by that member, and charges none', () =>
  logins(
    async ({ all, used, byAccount }) => {
      await byAccount.check('alice', 9)
      for (const refused of [await all.check(KEYS, 6), await all.peek(KEYS, 6)]) {
        assert.equal([refused.member, refused.retryAfterMs], ['address', Infinity])
      }
      assert.equal(await used(), [9, 0, 0])
      const own = await all.check(KEYS, 6, { limit: { account: 20, address: 6, device: 6 } })
      assert.equal([own.allowed, await used()], [true, [15, 6, 6]])
    },
    { limit: 9 },
  ))

test('wrong arguments reject, and charge no member', () =>
  logins(async ({ all, used, byDevice }) => {
    const { device, ...missing } = KEYS
    assert.is(device, 'phone')
    await assertRejects(() => all.check(missing as never), 'ERR_MILLRACE_INVALID_KEY', 'keys.device')
    await assertRejects(() => all.peek(KEYS, -1), 'ERR_MILLRACE_INVALID_COST', 'cost')
    await assertRejects(() => all.reserve(KEYS, undefined as never), 'ERR_MILLRACE_INVALID_COST', 'cost')
    const limit = { device: -1 }
    await assertRejects(() => all.wait(KEYS, { limit }), 'ERR_MILLRACE_INVALID_OPTION', 'limit.device')
    const other = await byDevice.check('phone', 0)
    await assertRejects(() => all.refund(other as never), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
    assert.equal(await used(), [0, 0, 0])
  }))

test('a reservation settles all members, once', () =>
  logins(async ({ all, used }) => {
    const reservation = await all.reserve(KEYS, 4)
    assert.equal([await reservation.commit(1), await used()], [-3, [1, 1, 1]])
    await assertRejects(() => reservation.cancel(), 'ERR_MILLRACE_SETTLED', 'reservation')
    assert.equal([await (await all.reserve(KEYS, 2)).commit(5), await used()], [3, [6, 6, 6]])
    const refused = await all.reserve(KEYS, 1)
    await assertRejects(() => refused.commit(), 'ERR_MILLRACE_NOT_RESERVED', 'reservation')
    const other = { account: 'bob', address: 'work', device: 'pad' }
    assert.is(await (await all.reserve(other, 3)).cancel(), 3)
    assert.ok((await all.check(other, 5)).allowed)
    const refunded = await all.reserve(KEYS, 0)
    await all.refund(refunded.decision)
    assert.is(await refunded.commit(), 0)
  }))

test('after a worker is lost, the members before it take their charges back', () =>
  logins(async ({ all, clock, byAccount, byDevice, byAddress }) => {
    const lostClock = manualClock(0)
    const doomed = createLimiter({ limit: 5, window: '1m', maxKeys: 20, engine: 'pool', clock: lostClock })
    const both = group({ account: byAccount, address: byAddress, device: doomed })
    assert.ok((await resolved(both.check(KEYS))).allowed)
    lostClock.set(1e300)
    const error = await assertRejects(() => both.check(KEYS, 2), 'ERR_MILLRACE_WORKER_LOST', 'engine')
    assert.is(error.mayBeCharged, true)
    lostClock.set(0)
    assert.equal([await byAccount.usage('alice'), byAddress.usage('home'), clock.now()], [1, 1, 0])
    assert.equal((await countsOf(byAccount))[0], 1)
    assert.ok((await resolved(both.check(KEYS, 4))).allowed)
    assert.ok((await resolved(all.check({ ...KEYS, account: 'bob', address: 'work' }))).allowed)
    assert.is(await byDevice.usage('phone'), 1)
    await doomed.close()
  }))
test('if a pool is overloaded, the members before it take their charges back', async () => {
  const options = { limit: 100, window: '1m', maxKeys: 20 } as const
  const first = createLimiter(options)
  const second = createLimiter({ ...options, engine: 'pool', pool: { maxPending: 3 } })
  const both = group({ first, second })
  const keys = { first: 'a', second: 'b' }
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => settled(both.check(keys))))
  const rejected = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  assert.is(rejected.length, 5)
  for (const { reason } of rejected) assertIsError(reason, 'ERR_MILLRACE_OVERLOADED', 'pool')
  assert.equal([first.usage('a'), await second.usage('b'), first.stats().allowed], [3, 3, 3])
  await second.close()
})

test('if a member is closed while another decides, each charge is taken back once', () =>
  logins(async ({ all, byAccount, byAddress, byDevice }) => {
    const [refunds, calls] = [
      [0, 0],
      [all.check(KEYS), all.check(KEYS, 5)],
    ]
    const closing = byDevice.close() // the workers still decide the requests in their rings
    const outcomes = await Promise.all(calls.map((each) => settled(each)))
    await closing
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') {
        refunds[i] = outcome.value.allowed ? [1, 5][i]! : 0
      } else assertIsError(outcome.reason, 'ERR_MILLRACE_CLOSED', 'members.device')
    }
    const charged = refunds[0]! + refunds[1]!
    assert.equal([await byAccount.usage('alice'), byAddress.usage('home')], [charged, charged])
    await assertRejects(() => all.check(KEYS), 'ERR_MILLRACE_CLOSED', 'members.device')
  }))

test('members with countRefused and shadow count only their own refusals', () =>
  logins(
    async ({ all, used, byAccount, byDevice }) => {
      for (let i = 0; i < 7; i++) await all.check(KEYS)
      assert.equal(await used(), [7, 5, 5], 'the first member charges its refusals')
      await byAccount.clear('alice')
      const refused = await all.check(KEYS)
      assert.equal([refused.member, refused.shadow], ['address', { allowed: false, retryAfterMs: MINUTE_MS }])
      assert.equal(await used(), [0, 5, 5])
      assert.equal(await Promise.all([byAccount, byDevice].map(countsOf)), [
        [5, 2, 0],
        [5, 0, 0],
      ])
    },
    { countRefused: true },
    { shadow: true },
  ))

test('an admission in shadow mode is not counted if a later member refuses', async () => {
  const clock = manualClock(0)
  const options = { limit: 2, window: '1m', maxKeys: 20, clock } as const
  const shadow = createLimiter({ ...options, shadow: true, engine: 'pool' })
  const strict = createLimiter({ ...options, limit: 3 })
  const both = group({ shadow, strict })
  for (let i = 0; i < 5; i++) await both.check({ shadow: 'a', strict: 'b' })
  assert.equal([await countsOf(shadow), strict.stats().denied], [[3, 0, 1], 2])
  const reservation = await both.reserve({ shadow: 'a', strict: 'c' }, 1)
  assert.equal(
    [await reservation.commit(3), await shadow.usage('a')],
    [2, 2],
    'enforced, the rule would have refused it',
  )
  assert.is(await both.refund((await both.reserve({ shadow: 'a', strict: 'd' }, 1)).decision), 1)
  await shadow.close()
})

test('a pool of several rules takes back and settles in each of them', async () => {
  const clock = manualClock(0)
  const rules = [
    { name: 'burst', limit: 3, window: '10s', granularity: '1s' },
    { name: 'minute', limit: 6, window: '1m', granularity: '1s', countRefused: true },
  ]
  const user = createLimiter({ rules, maxKeys: 20, clock, engine: 'pool' })
  const team = createLimiter({ limit: 4, window: '1m', granularity: '1s', maxKeys: 20, clock })
  const both = group({ user, team })
  const keys = { user: 'ann', team: 'red' }
  const used = async () => [
    ...(await Promise.all(rules.map(({ name }) => user.usage('ann', undefined, { rule: name })))),
    team.usage('red'),
  ]
  const decision = await both.check(keys, 2)
  assert.equal([decision.allowed, decision.member, decision.rule], [true, 'user', 'burst'])
  const refused = await both.check(keys, 3, { limit: { user: { burst: 9 } } })
  assert.equal([refused.member, await used()], ['team', [2, 2, 2]])
  assert.equal([await user.refund(refused.members.user), await countsOf(user)], [0, [1, 0, 0]])
  const above = await both.check(keys, 7, { limit: { user: { burst: 9 }, team: 9 } })
  assert.equal([above.rule, above.retryAfterMs, await used()], ['minute', Infinity, [2, 2, 2]])
  clock.advance(11_000)
  assert.equal([await both.refund(decision), await used()], [2, [0, 0, 0]])
  const reservation = await both.reserve(keys, 3)
  assert.equal([await reservation.commit(1), await used()], [-2, [1, 1, 1]])
  await user.penalize('ann', 5)
  const waiting = both.wait(keys, { limit: { user: { burst: 9 } } })
  await user.refund('ann', 2)
  assert.ok((await resolved(waiting)).allowed)
  assert.equal(await used(), [5, 5, 2])
  await user.close()
})

test('a pool with a unit takes back and settles in whole units', async () => {
  const clock = manualClock(0)
  const traffic = createLimiter({ limit: 1_000, unit: 100, window: '1m', maxKeys: 20, clock, engine: 'pool' })
  const requests = createLimiter({ limit: 950, window: '1m', maxKeys: 20, clock })
  const both = group({ traffic, requests })
  const keys = { traffic: 'a', requests: 'b' }
  const used = async () => [await traffic.usage('a'), requests.usage('b')]
  const decision = await both.check(keys, 250)
  assert.equal([decision.member, decision.remaining, await used()], ['traffic', 700, [300, 250]])
  const refused = await both.check(keys, 701, { limit: { traffic: 2_000 } })
  assert.equal([refused.member, await used(), refused.members.traffic.limit], ['requests', [300, 250], 2_000])
  assert.equal([(await both.check(keys, 1_001)).member, (await countsOf(traffic))[0]], ['traffic', 1])
  assert.equal([await both.refund(decision), await used()], [300, [0, 0]])
  assert.equal([await (await both.reserve(keys, 250)).commit(120), await used()], [-130, [200, 120]])
  assert.equal([await (await both.reserve(keys, 50)).commit(160), await used()], [110, [400, 280]])
  await traffic.close()
})

test('any member wakes a wait, and refused attempts charge nothing', () =>
  logins(
    async ({ all, used, byAddress, byDevice }) => {
      await byDevice.check('phone', 5)
      byAddress.check('home', 5)
      const waiting = all.wait(KEYS, { cost: 2 })
      byAddress.refund('home', 2)
      await turn()
      assert.equal(await used(), [0, 3, 5])
      await byDevice.refund('phone', 2)
      assert.ok((await resolved(waiting)).allowed)
      assert.equal(await used(), [2, 5, 5])
      const never = await settled(all.wait(KEYS, { cost: 6 }))
      assert.match(String((never as PromiseRejectedResult).reason), "at most the limit of 'account', 5")
    },
    { countRefused: true },
  ))

test('a wait that is aborted while a worker decides takes its charges back', () =>
  logins(async ({ all, used, byAccount, byAddress }) => {
    const controller = new AbortController()
    const waiting = settled(all.wait(KEYS, { signal: controller.signal }))
    controller.abort('enough') // the first request has been sent
    assert.equal(await waiting, { status: 'rejected', reason: 'enough' })
    assert.ok((await resolved(all.wait(KEYS, { cost: 5 }))).allowed)
    assert.equal(await used(), [5, 5, 5])
    assert.equal([(await countsOf(byAccount))[0], byAddress.stats().allowed], [1, 1])
  }))

test('a wait that was refused because of a charge is woken when that charge is taken back', () =>
  logins(async ({ all, byAccount, byAddress }) => {
    byAddress.check('home', 5)
    const refused = all.check(KEYS, 5) // keeps a charge of the account until the address refuses
    const waits = [byAccount.wait('alice'), byAccount.wait('alice')]
    assert.not((await resolved(refused)).allowed)
    for (const waiting of waits) assert.ok((await resolved(waiting)).allowed)
  }))

test('two groups that wait for each other’s keys do not keep each other awake', () =>
  logins(async ({ clock, all, byAccount, byAddress, byDevice }) => {
    const other = group({ device: byDevice, account: byAccount, address: byAddress })
    byAddress.check('home', 5)
    const waits = [all.wait(KEYS), other.wait(KEYS), all.wait({ ...KEYS, account: 'bob' })]
    const before = await Promise.all([byAccount, byDevice].map(countsOf))
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(await Promise.all([byAccount, byDevice].map(countsOf)), before)
    clock.advance(MINUTE_MS)
    for (const waiting of waits) assert.ok((await resolved(waiting)).allowed)
  }))

test('simultaneous requests never exceed a limit, and the last of them is admitted', () =>
  logins(async ({ all, used }) => {
    const decisions = await Promise.all(Array.from({ length: 40 }, () => all.check(KEYS)))
    const admitted = decisions.filter(({ allowed }) => allowed).length
    assert.ok(admitted > 0 && admitted <= 5, `${admitted}`)
    assert.equal(await used(), Array(3).fill(admitted))
    for (let i = admitted; i < 5; i++) assert.ok((await all.check(KEYS)).allowed)
    assert.not((await all.check(KEYS)).allowed)
  }))

test.run()
