// Several limiters that decide together, all or nothing. Each has a key of its own.
import { inspect } from 'node:util'
import {
  attachLimiter,
  createLimiter,
  type Decision,
  group,
  type Limiter,
  MillraceLimited,
  manualClock,
} from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from './support.js'

const MINUTE_MS = 61_000
const HOUR_MS = 3_660_000
const KEYS = { account: 'alice', address: 'home' }

/** A group of 5 in a minute by account, and of 8 in an hour by address. */
function logins(account: object = {}, address: object = {}) {
  const clock = manualClock(0)
  const more = { maxKeys: 20, clock }
  const byAccount = createLimiter({ limit: 5, window: '1m', granularity: '1s', ...more, ...account })
  const byAddress = createLimiter({ limit: 8, window: '1h', granularity: '1m', ...more, ...address })
  const both = group({ account: byAccount, address: byAddress })
  const used = ({ account, address } = KEYS) => [byAccount.usage(account), byAddress.usage(address)]
  return { clock, byAccount, byAddress, both, used }
}

const figuresOf = (decision: Decision) => {
  const { allowed, limit, remaining, retryAfterMs, resetMs } = decision
  return { allowed, limit, remaining, retryAfterMs, resetMs }
}

test('a request that all members admit charges each of them', () => {
  const { both, used } = logins()
  const decision = both.check(KEYS, 3)
  assert.ok(decision.allowed)
  assert.equal(used(), [3, 3])
  assert.equal(Object.keys(decision.members), ['account', 'address'])
  assert.equal([decision.members.account.remaining, decision.members.address.remaining], [2, 5])
  assert.equal(
    [decision.member, decision.rule, decision.limit, decision.remaining],
    ['account', 'default', 5, 2],
  )
  assert.equal([decision.retryAfterMs, decision.retryAfterSeconds], [0, 0])
  assert.is(decision.resetMs, decision.members.account.resetMs)
  assert.equal(
    decision.rules.map(({ remaining }) => remaining),
    [2, 5],
  )
})

test('an admission names the member with the smallest part of its limit left', () => {
  const { both, clock } = logins()
  assert.is(both.peek(KEYS).member, 'account', 'both are free, so the first is named')
  both.check(KEYS, 5)
  clock.advance(MINUTE_MS)
  assert.is(both.peek(KEYS).member, 'address')
  assert.is(both.check(KEYS).remaining, 2)
})

test('if the first member refuses, no member is charged', () => {
  const { both, used, clock } = logins()
  both.check(KEYS, 4)
  clock.advance(1_000)
  const refused = both.check(KEYS, 2)
  const { account, address } = refused.members
  assert.equal([refused.allowed, refused.member, refused.limit, refused.remaining], [false, 'account', 5, 1])
  assert.equal([refused.retryAfterMs, refused.retryAfterSeconds], [MINUTE_MS - 1_000, 60])
  assert.equal([account.allowed, address.allowed, address.remaining], [false, true, 4])
  assert.equal(used(), [4, 4])
})

test('if a later member refuses, the members before it take their charges back', () => {
  const { both, used, clock, byAddress } = logins()
  byAddress.check('home', 8)
  clock.advance(5_000)
  const refused = both.check(KEYS)
  assert.equal([refused.allowed, refused.member, refused.limit, refused.remaining], [false, 'address', 8, 0])
  const free = { allowed: true, limit: 5, remaining: 5, retryAfterMs: 0, resetMs: 0 }
  assert.equal(figuresOf(refused.members.account), free)
  for (let i = 0; i < 20; i++) both.check(KEYS, 2)
  assert.equal(used(), [0, 8])
  clock.advance(refused.retryAfterMs - 1)
  assert.not(both.check(KEYS).allowed)
  clock.advance(1)
  assert.ok(both.check(KEYS).allowed)
})

test('retryAfterMs is the longest time of the members that refuse', () => {
  const { both, clock, byAddress } = logins()
  byAddress.check('home', 4)
  clock.advance(10_000)
  both.check(KEYS, 4)
  const { member, members, retryAfterMs } = both.check(KEYS, 3)
  assert.is(member, 'account', 'the first member that refuses')
  assert.equal([members.account.retryAfterMs, members.address.allowed], [MINUTE_MS, false])
  assert.is(retryAfterMs, members.address.retryAfterMs)
  clock.advance(retryAfterMs - 1)
  assert.not(both.peek(KEYS, 3).allowed)
  clock.advance(1)
  assert.ok(both.check(KEYS, 3).allowed)
})

test('a cost above the limit of one member is refused for ever, and charges and inserts nothing', () => {
  const { both, byAccount, byAddress } = logins()
  for (const cost of [6, 8, Number.MAX_SAFE_INTEGER]) {
    for (const refused of [both.check(KEYS, cost), both.peek(KEYS, cost)]) {
      assert.equal([refused.allowed, refused.member, refused.retryAfterMs], [false, 'account', Infinity])
      assert.is(refused.retryAfterSeconds, 2_147_483)
      assert.is(refused.members.address.allowed, cost <= 8)
    }
  }
  byAccount.update('default', { limit: 100 })
  assert.equal([both.check(KEYS, 9).member, both.peek(KEYS, 9).member], ['address', 'address'])
  assert.equal([byAccount.stats().keys, byAddress.stats().keys], [0, 0])
})

test('a refusal names the member with a limit below the cost, even if an earlier member is full', () => {
  const { both, byAccount } = logins({ limit: 10 })
  byAccount.check('alice', 10)
  assert.equal([both.check(KEYS, 9).member, both.peek(KEYS, 9).member], ['address', 'address'])
  assert.is(both.check(KEYS, 8).member, 'account')
})

test('each key of a member is counted on its own', () => {
  const { both, used } = logins()
  for (let i = 0; i < 4; i++) both.check({ account: `account ${i}`, address: 'home' }, 2)
  const refused = both.check({ account: 'account 4', address: 'home' })
  assert.equal([refused.allowed, refused.member], [false, 'address'])
  assert.equal(used({ account: 'account 4', address: 'home' }), [0, 8])
  assert.ok(both.check({ account: 'account 4', address: 'work' }).allowed)
})

test('cost 0 charges nothing, and is refused only for a blocked key', () => {
  const { both, byAddress, used } = logins()
  assert.ok(both.check(KEYS, 0).allowed)
  byAddress.block('home', '1h')
  const refused = both.check(KEYS, 0)
  assert.equal([refused.allowed, refused.member], [false, 'address'])
  assert.ok(refused.retryAfterMs >= 3_600_000 && refused.retryAfterMs < 3_600_063, `${refused.retryAfterMs}`)
  assert.equal(used(), [0, 0])
})

test('a peek charges nothing and gives no key a place', () => {
  const { both, byAccount, used } = logins()
  const peeked = both.peek(KEYS, 2)
  assert.equal([peeked.allowed, peeked.remaining], [true, 5])
  assert.equal([byAccount.stats().keys, used()], [0, [0, 0]])
  both.check(KEYS, 5)
  assert.equal([both.peek(KEYS).allowed, both.peek(KEYS).member], [false, 'account'])
})

test('checkOrThrow returns an admission, and throws a refusal that names the member', () => {
  const { both } = logins()
  assert.ok(both.checkOrThrow(KEYS, 5).allowed)
  try {
    both.checkOrThrow(KEYS)
    assert.unreachable()
  } catch (error) {
    assert.instance(error, MillraceLimited)
    assert.match((error as MillraceLimited).message, 'member "account", rule "default" of 5')
    assert.is((error as MillraceLimited).decision.retryAfterMs, MINUTE_MS)
  }
})

test('a refund of the decision gives back the charge of every member, once', () => {
  const { both, used, clock, byAccount } = logins()
  const decision = both.check(KEYS, 3)
  const other = both.check(KEYS, 1)
  assert.equal([both.refund(decision), both.refund(decision)], [3, 0])
  assert.equal(used(), [1, 1])
  clock.advance(MINUTE_MS)
  assert.is(both.refund(other), 1, 'the charge has left one window, and counts in the other')
  assert.equal(used(), [0, 0])
  const third = both.check(KEYS, 2)
  assert.is(byAccount.refund(third.members.account), 2, 'a member gives back its own part')
  assert.equal([used(), both.refund(third), used()], [[0, 2], 2, [0, 0]])
})

test('a refusal and a peek have no charge to give back', () => {
  const { both, byAccount, byAddress, used } = logins()
  both.check(KEYS, 5)
  for (const decision of [both.check(KEYS), both.peek(KEYS), both.check(KEYS, 0)]) {
    assert.is(both.refund(decision), 0)
    assert.is(byAccount.refund(decision.members.account), 0)
    assert.is(byAddress.refund(decision.members.address), 0)
  }
  assert.equal(used(), [5, 5])
})

test('a group refuses to refund a decision of a limiter or of another group', () => {
  const { both, byAccount } = logins()
  const decision = both.check(KEYS)
  const others = [
    byAccount.check('bob'),
    decision.members.account,
    logins().both.check(KEYS),
    { ...decision },
  ]
  for (const other of [...others, decision.toJSON(), undefined, null, 5]) {
    assertRaises(
      () => both.refund(other as never),
      'ERR_MILLRACE_FOREIGN_DECISION',
      'decision',
      inspect(other),
    )
  }
  assertRaises(() => byAccount.refund(decision), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
})

test('a reservation settles all members', () => {
  const { both, used } = logins()
  assert.is(both.reserve(KEYS, 4).commit(1), -3)
  assert.equal(used(), [1, 1])
  assert.is(both.reserve(KEYS, 2).commit(5), 3)
  assert.equal(used(), [6, 6], 'a larger cost is charged beyond the limit')
  const refused = both.reserve(KEYS, 2)
  assert.not(refused.decision.allowed)
  assertRaises(() => refused.commit(), 'ERR_MILLRACE_NOT_RESERVED', 'reservation')
  const other = { account: 'bob', address: 'work' }
  const reservation = both.reserve(other, 3)
  assert.is(reservation.cancel(), 3)
  assert.equal(used(other), [0, 0])
  for (const again of [() => reservation.cancel(), () => reservation.commit(1)]) {
    assertRaises(again, 'ERR_MILLRACE_SETTLED', 'reservation')
  }
  const kept = both.reserve(other, 3)
  assert.equal([kept.commit(), used(other)], [0, [3, 3]])
})

test('a reservation whose decision was refunded, by the group or by a member, is settled', () => {
  const { both, byAddress } = logins()
  const first = both.reserve(KEYS, 3)
  both.refund(first.decision)
  const second = both.reserve(KEYS, 3)
  byAddress.refund(second.decision.members.address)
  for (const reservation of [first, second]) {
    assertRaises(() => reservation.commit(1), 'ERR_MILLRACE_SETTLED', 'reservation')
  }
})

test('a reservation whose charge has left one window gives back the rest in the other', () => {
  const { both, used, clock } = logins()
  const reservation = both.reserve(KEYS, 5)
  clock.advance(MINUTE_MS)
  assert.is(reservation.commit(2), -3)
  assert.equal(used(), [0, 2])
})

test('a limit of the call replaces that of its member', () => {
  const { both, used } = logins()
  const own = { limit: { account: 7 } }
  assert.ok(both.check(KEYS, 6, own).allowed)
  assert.equal([both.peek(KEYS, 2, own).member, both.peek(KEYS, 2, own).limit], ['account', 7])
  assert.is(both.check(KEYS, 3, { limit: { account: 20 } }).member, 'address')
  assert.ok(both.check(KEYS, 6, { limit: { account: 20, address: 20 } }).allowed)
  assert.is(both.check(KEYS, 21, { limit: { account: 20, address: 20 } }).retryAfterMs, Infinity)
  assert.equal(used(), [12, 12])
  assert.ok(both.check(KEYS, 1, { limit: { account: undefined, address: 20 } as never }).member, 'account')
  assert.ok(both.reserve(KEYS, 1, { limit: { account: 13, address: 13 } }).decision.allowed)
  assert.throws(() => both.checkOrThrow(KEYS, 1, { limit: { account: 13, address: 14 } }), /"account"/)
})

test('a member of several rules decides by all of them, and takes limits by their names', () => {
  const clock = manualClock(0)
  const rules = [
    { name: 'burst', limit: 2, window: '10s', granularity: '1s' },
    { name: 'hourly', limit: 6, window: '1h', granularity: '1m' },
  ]
  const byUser = createLimiter({ rules, maxKeys: 20, clock })
  const byTeam = createLimiter({
    name: 'team',
    limit: 5,
    window: '1m',
    granularity: '1s',
    maxKeys: 20,
    clock,
  })
  const usedBy = () => rules.map(({ name }) => byUser.usage('ann', undefined, { rule: name }))
  const both = group({ user: byUser, team: byTeam })
  const keys = { user: 'ann', team: 'red' }
  assert.ok(both.check(keys, 2).allowed)
  assert.equal(
    both.peek(keys).rules.map(({ rule }) => rule),
    ['burst', 'hourly', 'team'],
  )
  const refused = both.check(keys)
  assert.equal([refused.member, refused.rule, refused.limit], ['user', 'burst', 2])
  const own = { limit: { user: { burst: 10 } } }
  assert.ok(both.check(keys, 3, own).allowed)
  assert.equal([both.check(keys, 1, own).member, usedBy()], ['team', [5, 5]], 'taken back in both rules')
  assert.equal([both.check(keys, 7, own).rule, both.check(keys, 7, own).retryAfterMs], ['hourly', Infinity])
  clock.advance(11_000)
  const { retryAfterMs } = both.check(keys, 2)
  assert.is(retryAfterMs, HOUR_MS - 11_000, 'the hourly rule')
})

test('a member with a unit decides, takes back and settles in whole units', () => {
  const clock = manualClock(0)
  const traffic = createLimiter({ limit: 1_000, unit: 100, window: '1m', maxKeys: 20, clock })
  const requests = createLimiter({ limit: 950, window: '1m', maxKeys: 20, clock })
  const both = group({ traffic, requests })
  const keys = { traffic: 'a', requests: 'b' }
  const used = () => [traffic.usage('a'), requests.usage('b')]
  const decision = both.check(keys, 250)
  assert.equal([decision.member, decision.remaining, used()], ['traffic', 700, [300, 250]])
  const refused = both.check(keys, 701, { limit: { traffic: 2_000 } })
  assert.equal([refused.member, used(), refused.members.traffic.limit], ['requests', [300, 250], 2_000])
  assert.equal([both.check(keys, 1_001).member, both.check(keys, 951).member], ['traffic', 'requests'])
  assert.equal([both.refund(decision), used()], [300, [0, 0]])
  assert.equal([both.reserve(keys, 250).commit(120), used()], [-130, [200, 120]])
  assert.equal([both.reserve(keys, 50).commit(160), used()], [110, [400, 280]])
})

test('a handle of a member replaces the key', () => {
  const { both, byAccount, byAddress, used } = logins()
  const keys = { account: byAccount.handle('alice'), address: byAddress.handle('home') }
  for (let i = 0; i < 3; i++) assert.ok(both.check(keys).allowed)
  assert.ok(both.check(keys, 2, { limit: { address: 9 } }).allowed)
  assert.not(both.check(KEYS).allowed)
  assert.equal([used(), both.peek(keys).allowed], [[5, 5], false])
  const foreign = { account: byAddress.handle('alice'), address: 'home' }
  assertRaises(() => both.check(foreign), 'ERR_MILLRACE_FOREIGN_HANDLE', 'keys.account')
})

test('attached limiters can be members, and share their counts', () => {
  const { both, byAccount, byAddress } = logins()
  const attached = group({
    account: attachLimiter(byAccount.share()),
    address: attachLimiter(byAddress.share()),
  })
  assert.ok(both.check(KEYS, 3).allowed)
  assert.ok(attached.check(KEYS, 2).allowed)
  assert.equal([attached.check(KEYS).allowed, both.check(KEYS).allowed], [false, false])
})

test('a limiter may be a member of several groups', () => {
  const { byAccount, byAddress, both } = logins()
  const alone = group({ name: byAccount })
  const reversed = group({ address: byAddress, account: byAccount })
  assert.ok(alone.check({ name: 'alice' }, 2).allowed)
  assert.ok(reversed.check(KEYS, 3).allowed)
  assert.equal([both.check(KEYS).member, alone.check({ name: 'alice' }).member], ['account', 'name'])
})

test('the statistics of a member count a decision that all admitted or that it refused', () => {
  const { both, byAccount, byAddress } = logins()
  const counts = ({ allowed, denied, shadowDenied }: ReturnType<Limiter['stats']>) =>
    [allowed, denied, shadowDenied] as const
  for (let i = 0; i < 3; i++) both.check(KEYS, 2) // the third is refused by the account
  assert.equal(
    [counts(byAccount.stats()), counts(byAddress.stats())],
    [
      [2, 1, 0],
      [2, 0, 0],
    ],
  )
  byAddress.penalize('home', 8)
  for (let i = 0; i < 600; i++) both.check({ account: `${i % 10}`, address: 'home' })
  both.check(KEYS, 9)
  both.peek(KEYS)
  assert.equal(
    [counts(byAccount.stats()), counts(byAddress.stats())],
    [
      [2, 2, 0],
      [2, 600, 0],
    ],
  )
})

test('a member with countRefused charges only its own refusals', () => {
  const { both, used, byAddress } = logins({ countRefused: true }, { countRefused: true })
  for (let i = 0; i < 7; i++) both.check(KEYS)
  assert.equal(used(), [7, 5])
  both.check(KEYS, 6)
  assert.equal(used(), [7, 5], 'a cost above the limit is not charged')
  byAddress.penalize('home', 3)
  both.check({ account: 'bob', address: 'home' })
  assert.equal(used({ account: 'bob', address: 'home' }), [0, 9])
})

test('a member in shadow mode refuses nothing, and `decision.shadow` has its refusal', () => {
  const { both, used, byAccount, byAddress } = logins({ shadow: true })
  assert.equal(both.check(KEYS, 5).shadow, { allowed: true, retryAfterMs: 0 })
  const shadowed = both.check(KEYS, 2)
  assert.equal([shadowed.allowed, shadowed.shadow], [true, { allowed: false, retryAfterMs: MINUTE_MS }])
  assert.equal(used(), [5, 7])
  const above = both.check(KEYS, 3)
  assert.equal([above.allowed, above.member, above.shadow!.retryAfterMs], [false, 'address', HOUR_MS])
  assert.equal(used(), [5, 7])
  const { allowed, denied, shadowDenied } = byAccount.stats()
  assert.equal(
    [allowed, denied, shadowDenied],
    [2, 0, 1],
    'a decision that the address refused does not count',
  )
  assert.equal(byAddress.stats().denied, 1)
  assert.is(both.reserve(KEYS, 1).commit(4), 3)
  assert.equal(used(), [5, 11], 'enforced, the account would have refused it')
})

test('a decision is printed, serialized and copied without its internals', () => {
  const { both } = logins()
  both.check(KEYS, 5)
  for (const decision of [both.check(KEYS), both.check(KEYS, 6), both.peek(KEYS, 0)]) {
    const { toJSON, ...fields } = decision.toJSON() as ReturnType<typeof decision.toJSON> & { toJSON?: never }
    assert.is(toJSON, undefined)
    const names = ['allowed', 'limit', 'remaining', 'retryAfterMs', 'retryAfterSeconds', 'resetMs', 'rule']
    assert.equal(Object.keys(fields), [...names, 'member', 'members'])
    assert.equal(Object.keys(fields.members), ['account', 'address'])
    assert.equal(fields.members.account, decision.members.account.toJSON())
    assert.equal(structuredClone(fields), fields)
    assert.equal(JSON.parse(JSON.stringify(decision)), fields)
    assert.equal(Object.keys({ ...decision }), ['allowed', 'members'])
    assert.equal(Object.keys(structuredClone(decision)), ['allowed', 'members'])
    const printed = inspect(decision, { depth: 5 })
    for (const name of [...names, 'member', 'account', 'address']) assert.match(printed, `${name}: `)
    assert.not.match(printed, /lo:|hi:|era|engine|group/)
  }
  assert.is(both.check(KEYS, 6).toJSON().retryAfterMs, Number.MAX_SAFE_INTEGER)
  assert.is(inspect(both), "LimiterGroup { members: [ 'account', 'address' ] }")
})

test('a member may have any name', () => {
  const make = () => createLimiter({ limit: 1, window: '1m', maxKeys: 20 })
  const names = ['__proto__', 'constructor', 'toString', '', 'a b']
  const odd = group(Object.fromEntries(names.map((name) => [name, make()])))
  const keys = Object.fromEntries(names.map((name) => [name, 'key']))
  assert.equal(Object.keys(odd.check(keys).members), names)
  assert.equal(Object.keys(odd.check(keys).toJSON().members), names)
  assertRaises(() => odd.check({}), 'ERR_MILLRACE_INVALID_KEY', 'keys.__proto__')
})

test.run()
