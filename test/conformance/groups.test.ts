// run: once, also-full
// Several limiters that decide together, all or nothing. Each has a key of its own.
import {
  type AsyncLimiterGroup,
  type Decision,
  type LimiterGroup,
  type LimiterOptions,
  type LimiterStats,
  MillraceLimited,
} from 'millrace'
import * as assert from 'uvu/assert'
import { raised, usageOf } from './several-rules.js'
import { type Claims, conform, FIVE, type Subject, thrownBy } from './suite.js'

const KEYS = { account: 'alice', address: 'home' }

/** After this many milliseconds, no charge by account counts. */
const FREE_MS = 120_000

type Logins = LimiterGroup<'account' | 'address'> | AsyncLimiterGroup<'account' | 'address'>
type Own = Partial<LimiterOptions>

/** A group of 5 in a minute by account, and of 8 in an hour by address. */
function logins({ make, group, clock, times }: Subject, account: Own = {}, address: Own = {}) {
  const byAccount = make({ ...FIVE, ...account })
  const byAddress = make({ ...FIVE, limit: 8, window: '1h', granularity: '1m', ...address })
  const both = group({ account: byAccount, address: byAddress }) as Logins
  const used = ({ account, address } = KEYS) =>
    Promise.all([byAccount.usage(account), byAddress.usage(address)])
  const [minute, hour] = [times(byAccount.rule), times(byAddress.rule)]
  return { clock, byAccount, byAddress, both, used, minute, hour }
}

const figuresOf = (decision: Decision) => {
  const { allowed, limit, remaining, retryAfterMs, resetMs } = decision
  return { allowed, limit, remaining, retryAfterMs, resetMs }
}

const CLAIMS: Claims = {
  'a request that all members admit charges each of them': async (subject) => {
    const { both, used } = logins(subject)
    const decision = await both.check(KEYS, 3)
    assert.ok(decision.allowed)
    assert.equal(await used(), [3, 3])
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
  },
  'an admission names the member with the smallest part of its limit left': async (subject) => {
    const { both, clock } = logins(subject)
    assert.is((await both.peek(KEYS)).member, 'account', 'both are free, so the first is named')
    await both.check(KEYS, 5)
    clock.advance(FREE_MS)
    assert.is((await both.peek(KEYS)).member, 'address')
    assert.is((await both.check(KEYS)).remaining, 2)
  },
  'if the first member refuses, no member is charged': async (subject) => {
    const { both, used, clock, minute } = logins(subject)
    await both.check(KEYS, 4)
    clock.advance(1_000)
    const refused = await both.check(KEYS, 2)
    const { account, address } = refused.members
    assert.equal(
      [refused.allowed, refused.member, refused.limit, refused.remaining],
      [false, 'account', 5, 1],
    )
    const untilFits = minute.untilFits(2, [0, 4])
    assert.equal([refused.retryAfterMs, refused.retryAfterSeconds], [untilFits, Math.ceil(untilFits / 1_000)])
    assert.equal([account.allowed, address.allowed, address.remaining], [false, true, 4])
    assert.equal(await used(), [4, 4])
  },
  'if a later member refuses, the members before it take their charges back': async (subject) => {
    const { both, used, clock, byAddress } = logins(subject)
    await byAddress.check('home', 8)
    clock.advance(5_000)
    const refused = await both.check(KEYS)
    assert.equal(
      [refused.allowed, refused.member, refused.limit, refused.remaining],
      [false, 'address', 8, 0],
    )
    const free = { allowed: true, limit: 5, remaining: 5, retryAfterMs: 0, resetMs: 0 }
    assert.equal(figuresOf(refused.members.account), free)
    for (let i = 0; i < 20; i++) await both.check(KEYS, 2)
    assert.equal(await used(), [0, 8])
    clock.advance(refused.retryAfterMs - 1)
    assert.not((await both.check(KEYS)).allowed)
    clock.advance(1)
    assert.ok((await both.check(KEYS)).allowed)
  },
  'retryAfterMs is the longest time of the members that refuse': async (subject) => {
    const { both, clock, byAddress, minute, hour } = logins(subject)
    await byAddress.check('home', 4)
    clock.advance(10_000)
    await both.check(KEYS, 4)
    const { member, members, retryAfterMs } = await both.check(KEYS, 3)
    assert.is(member, 'account', 'the first member that refuses')
    const untilFits = minute.untilFits(3, [10_000, 4])
    assert.equal([members.account.retryAfterMs, members.address.allowed], [untilFits, false])
    assert.equal(
      [members.address.retryAfterMs, retryAfterMs],
      Array(2).fill(hour.untilFits(3, [0, 4], [10_000, 4])),
    )
    clock.advance(retryAfterMs - 1)
    assert.not((await both.peek(KEYS, 3)).allowed)
    clock.advance(1)
    assert.ok((await both.check(KEYS, 3)).allowed)
  },
  'a cost above the limit of one member is refused for ever, and charges and inserts nothing': async (
    subject,
  ) => {
    const { both, byAccount, byAddress } = logins(subject)
    for (const cost of [6, 8, Number.MAX_SAFE_INTEGER]) {
      for (const refused of [await both.check(KEYS, cost), await both.peek(KEYS, cost)]) {
        assert.equal([refused.allowed, refused.member, refused.retryAfterMs], [false, 'account', Infinity])
        assert.is(refused.retryAfterSeconds, 2_147_483)
        assert.is(refused.members.address.allowed, cost <= 8)
      }
    }
    await byAccount.update('default', { limit: 100 })
    assert.equal(
      [(await both.check(KEYS, 9)).member, (await both.peek(KEYS, 9)).member],
      ['address', 'address'],
    )
    assert.equal([(await byAccount.stats()).keys, (await byAddress.stats()).keys], [0, 0])
  },
  'a refusal names the member with a limit below the cost, even if an earlier member is full': async (
    subject,
  ) => {
    const { both, byAccount } = logins(subject, { limit: 10 })
    await byAccount.check('alice', 10)
    assert.equal(
      [(await both.check(KEYS, 9)).member, (await both.peek(KEYS, 9)).member],
      ['address', 'address'],
    )
    assert.is((await both.check(KEYS, 8)).member, 'account')
  },
  'each key of a member is counted on its own': async (subject) => {
    const { both, used } = logins(subject)
    for (let i = 0; i < 4; i++) await both.check({ account: `account ${i}`, address: 'home' }, 2)
    const refused = await both.check({ account: 'account 4', address: 'home' })
    assert.equal([refused.allowed, refused.member], [false, 'address'])
    assert.equal(await used({ account: 'account 4', address: 'home' }), [0, 8])
    assert.ok((await both.check({ account: 'account 4', address: 'work' })).allowed)
  },
  'cost 0 charges nothing, and is refused only for a blocked key': async (subject) => {
    const { both, byAddress, used } = logins(subject)
    assert.ok((await both.check(KEYS, 0)).allowed)
    await byAddress.block('home', '1h')
    const refused = await both.check(KEYS, 0)
    assert.equal([refused.allowed, refused.member], [false, 'address'])
    assert.ok(
      refused.retryAfterMs >= 3_600_000 && refused.retryAfterMs < 3_600_063,
      `${refused.retryAfterMs}`,
    )
    assert.equal(await used(), [0, 0])
  },
  'a peek charges nothing and gives no key a place': async (subject) => {
    const { both, byAccount, used } = logins(subject)
    const peeked = await both.peek(KEYS, 2)
    assert.equal([peeked.allowed, peeked.remaining], [true, 5])
    assert.equal([(await byAccount.stats()).keys, await used()], [0, [0, 0]])
    await both.check(KEYS, 5)
    assert.equal([(await both.peek(KEYS)).allowed, (await both.peek(KEYS)).member], [false, 'account'])
  },
  'checkOrThrow returns an admission, and throws a refusal that names the member': async (subject) => {
    const { both, minute } = logins(subject)
    assert.ok((await both.checkOrThrow(KEYS, 5)).allowed)
    const error = await thrownBy(async () => both.checkOrThrow(KEYS))
    assert.ok(error instanceof MillraceLimited)
    assert.match(error.message, 'member "account", rule "default" of 5')
    assert.is(error.decision.retryAfterMs, minute.untilFits(1, [0, 5]))
  },
  'a refund of the decision gives back the charge of every member, once': async (subject) => {
    const { both, used, clock, byAccount } = logins(subject)
    const decision = await both.check(KEYS, 3)
    const other = await both.check(KEYS, 1)
    assert.equal([await both.refund(decision), await both.refund(decision)], [3, 0])
    assert.equal(await used(), [1, 1])
    clock.advance(FREE_MS)
    assert.is(await both.refund(other), 1, 'the charge has left one window, and counts in the other')
    assert.equal(await used(), [0, 0])
    const third = await both.check(KEYS, 2)
    assert.is(await byAccount.refund(third.members.account), 2, 'a member gives back its own part')
    assert.equal([await used(), await both.refund(third), await used()], [[0, 2], 2, [0, 0]])
  },
  'a refusal and a peek have no charge to give back': async (subject) => {
    const { both, byAccount, byAddress, used } = logins(subject)
    await both.check(KEYS, 5)
    for (const decision of [await both.check(KEYS), await both.peek(KEYS), await both.check(KEYS, 0)]) {
      assert.is(await both.refund(decision), 0)
      assert.is(await byAccount.refund(decision.members.account), 0)
      assert.is(await byAddress.refund(decision.members.address), 0)
    }
    assert.equal(await used(), [5, 5])
  },
  'a group refuses to refund a decision of a limiter or of another group': async (subject) => {
    const { both, byAccount } = logins(subject)
    const decision = await both.check(KEYS)
    const others = [
      await byAccount.check('bob'),
      decision.members.account,
      await logins(subject).both.check(KEYS),
      { ...decision },
    ]
    for (const other of [...others, decision.toJSON(), undefined, null, 5]) {
      await raised(() => both.refund(other as never), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
    }
    await raised(() => byAccount.refund(decision as never), 'ERR_MILLRACE_FOREIGN_DECISION', 'decision')
  },
  'a reservation settles all members': async (subject) => {
    const { both, used } = logins(subject)
    assert.is(await (await both.reserve(KEYS, 4)).commit(1), -3)
    assert.equal(await used(), [1, 1])
    assert.is(await (await both.reserve(KEYS, 2)).commit(5), 3)
    assert.equal(await used(), [6, 6], 'a larger cost is charged beyond the limit')
    const refused = await both.reserve(KEYS, 2)
    assert.not(refused.decision.allowed)
    await raised(() => refused.commit(), 'ERR_MILLRACE_NOT_RESERVED', 'reservation')
    const other = { account: 'bob', address: 'work' }
    const reservation = await both.reserve(other, 3)
    assert.is(await reservation.cancel(), 3)
    assert.equal(await used(other), [0, 0])
    for (const again of [() => reservation.cancel(), () => reservation.commit(1)]) {
      await raised(again, 'ERR_MILLRACE_SETTLED', 'reservation')
    }
    const kept = await both.reserve(other, 3)
    assert.equal([await kept.commit(), await used(other)], [0, [3, 3]])
  },
  'a reservation whose decision was refunded, by the group or by a member, is settled': async (subject) => {
    const { both, byAddress } = logins(subject)
    const first = await both.reserve(KEYS, 3)
    await both.refund(first.decision)
    const second = await both.reserve(KEYS, 3)
    await byAddress.refund(second.decision.members.address)
    for (const reservation of [first, second]) {
      await raised(() => reservation.commit(1), 'ERR_MILLRACE_SETTLED', 'reservation')
    }
  },
  'a reservation whose charge has left one window gives back the rest in the other': async (subject) => {
    const { both, used, clock } = logins(subject)
    const reservation = await both.reserve(KEYS, 5)
    clock.advance(FREE_MS)
    assert.is(await reservation.commit(2), -3)
    assert.equal(await used(), [0, 2])
  },
  'a limit of the call replaces that of its member': async (subject) => {
    const { both, used } = logins(subject)
    if (subject.algorithm.countsInParts) return // in parts of its limits: see per-call.test.ts
    const own = { limit: { account: 7 } }
    assert.ok((await both.check(KEYS, 6, own)).allowed)
    assert.equal(
      [(await both.peek(KEYS, 2, own)).member, (await both.peek(KEYS, 2, own)).limit],
      ['account', 7],
    )
    assert.is((await both.check(KEYS, 3, { limit: { account: 20 } })).member, 'address')
    assert.ok((await both.check(KEYS, 6, { limit: { account: 20, address: 20 } })).allowed)
    assert.is((await both.check(KEYS, 21, { limit: { account: 20, address: 20 } })).retryAfterMs, Infinity)
    assert.equal(await used(), [12, 12])
    assert.ok(
      (await both.check(KEYS, 1, { limit: { account: undefined, address: 20 } as never })).member,
      'account',
    )
    assert.ok((await both.reserve(KEYS, 1, { limit: { account: 13, address: 13 } })).decision.allowed)
    const error = await thrownBy(async () =>
      both.checkOrThrow(KEYS, 1, { limit: { account: 13, address: 14 } }),
    )
    assert.match((error as Error).message, '"account"')
  },
  'a member of several rules decides by all of them, and takes limits by their names': async (subject) => {
    if (subject.algorithm.countsInParts) return // in parts of its limits: see per-call.test.ts
    const { clock, times, make, group } = subject
    const rules = [
      { name: 'burst', limit: 2, window: '10s', granularity: '1s' },
      { name: 'hourly', limit: 6, window: '1h', granularity: '1m' },
    ]
    const byUser = make({ rules, maxKeys: 20 })
    const byTeam = make({ ...FIVE, name: 'team' })
    const usedBy = () => usageOf(byUser, 'ann')
    const both = group({ user: byUser, team: byTeam })
    const keys = { user: 'ann', team: 'red' }
    assert.ok((await both.check(keys, 2)).allowed)
    assert.equal(
      (await both.peek(keys)).rules.map(({ rule }) => rule),
      ['burst', 'hourly', 'team'],
    )
    const refused = await both.check(keys)
    assert.equal([refused.member, refused.rule, refused.limit], ['user', 'burst', 2])
    const own = { limit: { user: { burst: 10 } } }
    assert.ok((await both.check(keys, 3, own)).allowed)
    assert.equal(
      [(await both.check(keys, 1, own)).member, await usedBy()],
      ['team', [5, 5]],
      'taken back in both rules',
    )
    assert.equal(
      [(await both.check(keys, 7, own)).rule, (await both.check(keys, 7, own)).retryAfterMs],
      ['hourly', Infinity],
    )
    clock.advance(20_000)
    const { retryAfterMs } = await both.check(keys, 2)
    assert.is(retryAfterMs, times(byUser.rules[1]).untilFits(2, [0, 5]), 'the hourly rule')
  },
  'a member with a unit decides, takes back and settles in whole units': async (subject) => {
    const { make, group } = subject
    const traffic = make({ limit: 1_000, unit: 100, window: '1m', maxKeys: 20 })
    const requests = make({ limit: 950, window: '1m', maxKeys: 20 })
    const both = group({ traffic, requests })
    const keys = { traffic: 'a', requests: 'b' }
    const used = () => Promise.all([traffic.usage('a'), requests.usage('b')])
    const decision = await both.check(keys, 250)
    assert.equal([decision.member, decision.remaining, await used()], ['traffic', 700, [300, 250]])
    const refused = await both.check(keys, 701, { limit: { traffic: 2_000 } })
    assert.equal(
      [refused.member, await used(), refused.members.traffic.limit],
      ['requests', [300, 250], 2_000],
    )
    assert.equal(
      [(await both.check(keys, 1_001)).member, (await both.check(keys, 951)).member],
      ['traffic', 'requests'],
    )
    assert.equal([await both.refund(decision), await used()], [300, [0, 0]])
    assert.equal([await (await both.reserve(keys, 250)).commit(120), await used()], [-130, [200, 120]])
    assert.equal([await (await both.reserve(keys, 50)).commit(160), await used()], [110, [400, 280]])
  },
  'a handle of a member replaces the key': async (subject) => {
    const { both, byAccount, byAddress, used } = logins(subject)
    const keys = { account: byAccount.handle('alice'), address: byAddress.handle('home') }
    for (let i = 0; i < 3; i++) assert.ok((await both.check(keys)).allowed)
    assert.ok((await both.check(keys, 2, { limit: { address: 9 } })).allowed)
    assert.not((await both.check(KEYS)).allowed)
    assert.equal([await used(), (await both.peek(keys)).allowed], [[5, 5], false])
    const foreign = { account: byAddress.handle('alice'), address: 'home' }
    await raised(() => both.check(foreign), 'ERR_MILLRACE_FOREIGN_HANDLE', 'keys.account')
  },
  'a limiter may be a member of several groups': async (subject) => {
    const { byAccount, byAddress, both } = logins(subject)
    const alone = subject.group({ name: byAccount })
    const reversed = subject.group({ address: byAddress, account: byAccount })
    assert.ok((await alone.check({ name: 'alice' }, 2)).allowed)
    assert.ok((await reversed.check(KEYS, 3)).allowed)
    assert.equal(
      [(await both.check(KEYS)).member, (await alone.check({ name: 'alice' })).member],
      ['account', 'name'],
    )
  },
  'the statistics of a member count a decision that all admitted or that it refused': async (subject) => {
    const { both, byAccount, byAddress } = logins(subject)
    const counts = ({ allowed, denied, shadowDenied }: LimiterStats) => [allowed, denied, shadowDenied]
    for (let i = 0; i < 3; i++) await both.check(KEYS, 2) // the third is refused by the account
    assert.equal(
      [counts(await byAccount.stats()), counts(await byAddress.stats())],
      [
        [2, 1, 0],
        [2, 0, 0],
      ],
    )
    await byAddress.penalize('home', 8)
    for (let i = 0; i < 600; i++) await both.check({ account: `${i % 10}`, address: 'home' })
    await both.check(KEYS, 9)
    await both.peek(KEYS)
    assert.equal(
      [counts(await byAccount.stats()), counts(await byAddress.stats())],
      [
        [2, 2, 0],
        [2, 600, 0],
      ],
    )
  },
  'a member with countRefused charges only its own refusals': async (subject) => {
    const { both, used, byAddress } = logins(subject, { countRefused: true }, { countRefused: true })
    for (let i = 0; i < 7; i++) await both.check(KEYS)
    assert.equal(await used(), [7, 5])
    await both.check(KEYS, 6)
    assert.equal(await used(), [7, 5], 'a cost above the limit is not charged')
    await byAddress.penalize('home', 3)
    await both.check({ account: 'bob', address: 'home' })
    assert.equal(await used({ account: 'bob', address: 'home' }), [0, 9])
  },
  'a member in shadow mode refuses nothing, and `decision.shadow` has its refusal': async (subject) => {
    const { both, used, byAccount, byAddress, minute, hour } = logins(subject, { shadow: true })
    assert.equal((await both.check(KEYS, 5)).shadow, { allowed: true, retryAfterMs: 0 })
    const shadowed = await both.check(KEYS, 2)
    assert.equal(
      [shadowed.allowed, shadowed.shadow],
      [true, { allowed: false, retryAfterMs: minute.untilFits(2, [0, 5]) }],
    )
    assert.equal(await used(), [5, 7])
    const above = await both.check(KEYS, 3)
    assert.equal(
      [above.allowed, above.member, above.shadow!.retryAfterMs],
      [false, 'address', hour.untilFits(3, [0, 7])],
    )
    assert.equal(await used(), [5, 7])
    const { allowed, denied, shadowDenied } = await byAccount.stats()
    assert.equal(
      [allowed, denied, shadowDenied],
      [2, 0, 1],
      'a decision that the address refused does not count',
    )
    assert.equal((await byAddress.stats()).denied, 1)
    assert.is(await (await both.reserve(KEYS, 1)).commit(4), 3)
    assert.equal(await used(), [5, 11], 'enforced, the account would have refused it')
  },
}

// Of a Cluster, the keys of a request must be in one slot: see test/redis/group.test.ts. Limiters with shards join none.
process.env.MILLRACE_TEST_SHARDS = '0'
conform([[CLAIMS, FIVE]], /^sliding (log|counter)/, /./, ['iovalkey'])
