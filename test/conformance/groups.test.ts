// run: once, also-full, also-long
// Several limiters that decide together, all or nothing. Each has a key of its own.
import { type Decision, MillraceLimited } from 'millrace'
import * as assert from 'uvu/assert'
import { conformGroups, FREE_MS, KEYS, logins } from './groups.js'
import { type Claims, thrownBy } from './suite.js'

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
}

conformGroups(CLAIMS)
