// `wait` of a group: serves calls with the same keys in order, and any member can wake them.
import { createLimiter, type GroupDecision, group, type MillraceError, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, resolved, settled, turn } from './support.js'

const KEYS = { account: 'alice', address: 'home' }
const MINUTE_MS = 61_000

function logins(account: object = {}, address: object = {}) {
  const clock = manualClock(0)
  const more = { window: '1m', granularity: '1s', maxKeys: 20, clock } as const
  const byAccount = createLimiter({ limit: 5, ...more, ...account })
  const byAddress = createLimiter({ limit: 5, ...more, ...address })
  const both = group({ account: byAccount, address: byAddress })
  const used = () => [byAccount.usage('alice'), byAddress.usage('home')]
  return { clock, byAccount, byAddress, both, used }
}

/** Whether the promise is still pending after the event loop has turned twice. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  await turn()
  return (await Promise.race([promise, turn().then(() => pending)])) === pending
}

test('a wait that fits resolves at once, with the decision', async () => {
  const { both, used } = logins()
  const decision = await both.wait(KEYS, { cost: 5 })
  assert.equal([decision.allowed, decision.members.address.remaining, used()], [true, 0, [5, 5]])
  assert.is(both.refund(decision), 5)
})

test('a wait resolves when the last of the members has room', async () => {
  const { both, used, clock, byAccount, byAddress } = logins()
  byAccount.check('alice', 5)
  clock.advance(10_000)
  byAddress.check('home', 5)
  const waiting = both.wait(KEYS)
  clock.advance(MINUTE_MS - 10_000)
  assert.ok(await isPending(waiting), 'only the account has room')
  clock.advance(9_999)
  assert.ok(await isPending(waiting))
  clock.advance(1)
  assert.ok((await resolved(waiting)).allowed)
  assert.equal(used(), [1, 1])
})

for (const [name, free] of Object.entries<(made: ReturnType<typeof logins>) => void>({
  'a refund by key': ({ byAddress }) => byAddress.refund('home', 1),
  'a refund of a decision': ({ byAddress }) => {
    byAddress.clear('home')
    const decision = byAddress.check('home', 5)
    byAddress.refund(decision)
  },
  'a refund of another group': ({ byAddress }) => {
    byAddress.clear('home')
    const other = group({ address: byAddress })
    other.refund(other.check({ address: 'home' }, 5))
  },
  'the end of a reservation': ({ byAddress }) => {
    byAddress.clear('home')
    group({ address: byAddress }).reserve({ address: 'home' }, 5).commit(4)
  },
  'a clear': ({ byAddress }) => byAddress.clear('home'),
  'a clear of all keys': ({ byAddress }) => byAddress.clearAll(),
  'an update of the limit': ({ byAddress }) => byAddress.update('default', { limit: 6 }),
})) {
  test(`${name} in any member wakes a pending wait`, async () => {
    const made = logins()
    made.byAddress.check('home', 5)
    const waiting = made.both.wait(KEYS)
    assert.ok(await isPending(waiting))
    free(made)
    assert.ok((await resolved(waiting)).allowed)
    assert.is(made.used()[0], 1)
  })
}

test('a refund of another key wakes nothing', async () => {
  const { both, byAddress } = logins()
  byAddress.check('home', 5)
  byAddress.check('work', 5)
  const waiting = both.wait(KEYS)
  const before = byAddress.stats().denied
  byAddress.refund('work', 5)
  assert.ok(await isPending(waiting))
  assert.is(byAddress.stats().denied, before)
  await byAddress.close()
  assertIsError(await rejectionOf(waiting), 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('calls with the same keys are served in order, so a small cost does not overtake a large one', async () => {
  const { both, byAddress, used } = logins()
  byAddress.check('home', 5)
  const order: number[] = []
  const waits = [4, 1].map((cost) => both.wait(KEYS, { cost }).then(() => order.push(cost)))
  byAddress.refund('home', 3)
  await turn()
  assert.equal([order, used()], [[], [0, 2]])
  byAddress.refund('home', 2)
  await Promise.all(waits)
  assert.equal(
    [order, used()],
    [
      [4, 1],
      [5, 5],
    ],
  )
})

test('calls that differ in the key of one member do not wait for each other', async () => {
  const { both, byAddress } = logins()
  byAddress.check('home', 5)
  const blocked = both.wait(KEYS)
  assert.ok((await resolved(both.wait({ account: 'alice', address: 'work' }))).allowed)
  assert.ok(await isPending(blocked))
  byAddress.refund('home', 1)
  await resolved(blocked)
})

test('an aborted wait leaves no charge, and the next one is served', async () => {
  const { both, byAddress, used } = logins()
  byAddress.check('home', 5)
  const controller = new AbortController()
  const aborted = settled(both.wait(KEYS, { cost: 5, signal: controller.signal }))
  const next = both.wait(KEYS)
  byAddress.refund('home', 1)
  assert.ok(await isPending(next))
  controller.abort('enough')
  assert.equal(await aborted, { status: 'rejected', reason: 'enough' })
  assert.ok((await resolved(next)).allowed)
  assert.equal(used(), [1, 5])
  const never = settled(both.wait(KEYS, { signal: AbortSignal.abort('before') }))
  assert.equal(await never, { status: 'rejected', reason: 'before' })
  assert.equal(used(), [1, 5])
})

test('a wait that can never end is rejected, and the error names the member', async () => {
  const { both, byAccount } = logins({ limit: 9 })
  const above = (await rejectionOf(both.wait(KEYS, { cost: 6 }))) as MillraceError
  assertIsError(above, 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  assert.match(above.message, "at most the limit of 'address', 5")
  assert.ok((await both.wait(KEYS, { cost: 6, limit: { address: 6 } })).allowed)
  const own = both.wait(KEYS, { cost: 4, limit: { account: 3 } })
  assert.match(String(await rejectionOf(own)), "at most the limit of 'account', 3")
  byAccount.block('alice', Number.POSITIVE_INFINITY)
  assertIsError(await rejectionOf(both.wait(KEYS)), 'ERR_MILLRACE_NEVER_ADMITTED', 'key')
})

test('the error of a wait names a rule of a member, but none in shadow mode', async () => {
  const rules = [
    { name: 'burst', limit: 2, window: '10s', shadow: true },
    { name: 'hourly', limit: 6, window: '1h' },
  ]
  const user = createLimiter({ rules, maxKeys: 20, clock: manualClock(0) })
  const both = group({ user, team: createLimiter({ limit: 50, window: '1h', maxKeys: 20 }) })
  const never = await rejectionOf(both.wait({ user: 'ann', team: 'red' }, { cost: 7 }))
  assert.match(String(never), "at most the limit of 'user.hourly', 6")
})

test('closing a member rejects the pending calls of its group, and no calls of other limiters', async () => {
  const { both, byAccount, byAddress } = logins()
  byAddress.check('home', 5)
  const grouped = both.wait(KEYS)
  const alone = byAddress.wait('home')
  await byAccount.close()
  assertIsError(await rejectionOf(grouped), 'ERR_MILLRACE_CLOSED', 'limiter')
  assert.ok(await isPending(alone))
  byAddress.refund('home', 1)
  assert.ok((await resolved(alone)).allowed)
})

test('refused attempts are not charged by countRefused, and do not count in the statistics', async () => {
  const { both, byAccount, byAddress, used } = logins({ countRefused: true }, { countRefused: true })
  byAddress.check('home', 5)
  const waiting = both.wait(KEYS)
  for (let i = 0; i < 5; i++) {
    byAddress.refund('home', 0)
    await turn()
  }
  assert.equal(used(), [0, 5])
  assert.equal([byAccount.stats().denied, byAddress.stats().denied], [0, 0])
  byAddress.refund('home', 1)
  await resolved(waiting)
  assert.equal([used(), byAccount.stats().allowed], [[1, 5], 1])
})

test('two groups that wait for each other’s keys do not keep each other awake', async () => {
  const { clock, byAccount, byAddress, both } = logins()
  const byDevice = createLimiter({ limit: 5, window: '1m', maxKeys: 20, clock })
  const other = group({ account: byAccount, device: byDevice })
  byAddress.check('home', 5)
  byDevice.check('phone', 5)
  let readings = 0
  const { now } = clock
  const waits: Promise<GroupDecision>[] = [both.wait(KEYS), other.wait({ account: 'alice', device: 'phone' })]
  clock.now = () => {
    readings++
    return now.call(clock)
  }
  for (let i = 0; i < 20; i++) await turn()
  assert.is(readings, 0)
  byAddress.refund('home', 1)
  byDevice.refund('phone', 1)
  for (const waiting of waits) assert.ok((await resolved(waiting)).allowed)
})

test('a timer retries a wait on a member with a real clock', async () => {
  const clock = manualClock(0)
  const manual = createLimiter({ limit: 1, window: '1h', maxKeys: 20, clock })
  const real = createLimiter({ limit: 1, window: 40, granularity: 1, maxKeys: 20 })
  const both = group({ manual, real })
  real.check('b')
  assert.ok((await resolved(both.wait({ manual: 'a', real: 'b' }))).allowed)
  const waiting = both.wait({ manual: 'a', real: 'c' })
  assert.ok(await isPending(waiting), 'only a manual clock can end this wait')
  clock.advance(3_660_000)
  assert.ok((await resolved(waiting)).allowed)
})

async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await settled(promise)
  return outcome.status === 'rejected' ? outcome.reason : undefined
}

test.run()
