// run: once, also-full, also-long
// Refunds and reservations of a group.
import * as assert from 'uvu/assert'
import { conformGroups, FREE_MS, KEYS, logins } from './groups.js'
import { raised } from './several-rules.js'
import type { Claims } from './suite.js'

const CLAIMS: Claims = {
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
}

conformGroups(CLAIMS)
