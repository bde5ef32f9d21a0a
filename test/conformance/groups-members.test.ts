// run: once, also-full, also-long
// What the options of a member, and its place in several groups, mean for the group.

import type { LimiterStats } from 'millrace'
import * as assert from 'uvu/assert'
import { conformGroups, KEYS, logins } from './groups.js'
import { raised, usageOf } from './several-rules.js'
import { type Claims, FIVE, thrownBy } from './suite.js'

const CLAIMS: Claims = {
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
  'each member with countRefused charges what it refuses, also if another member refuses first': async (
    subject,
  ) => {
    const { both, used, byAccount, byAddress } = logins(
      subject,
      { countRefused: true },
      { countRefused: true },
    )
    await byAccount.penalize('alice', 5)
    await byAddress.penalize('home', 8)
    for (let i = 1; i <= 3; i++) {
      assert.is((await both.check(KEYS)).member, 'account')
      assert.equal(await used(), [5 + i, 8 + i])
    }
    const denied = async () => [(await byAccount.stats()).denied, (await byAddress.stats()).denied]
    assert.equal(await denied(), [3, 0], 'the member that refuses first counts the decision')
    for (const cost of [6, 9])
      assert.is((await both.check(KEYS, cost)).retryAfterMs, Number.POSITIVE_INFINITY)
    await both.peek(KEYS)
    assert.equal(await used(), [8, 11])
  },
  'a cost above the limit of one rule of a member is charged in none of its rules': async (subject) => {
    const rules = [
      { name: 'burst', limit: 2, window: '10s' },
      { name: 'minute', limit: 5, window: '1m', countRefused: true },
    ]
    const byUser = subject.make({ rules, maxKeys: 20 })
    const byTeam = subject.make({ ...FIVE, name: 'team' })
    const both = subject.group({ user: byUser, team: byTeam })
    await byUser.penalize('ann', 5)
    await both.check({ user: 'ann', team: 'red' }, 4)
    assert.equal([await usageOf(byUser, 'ann'), await byTeam.usage('red')], [[5, 5], 0])
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

conformGroups(CLAIMS)
