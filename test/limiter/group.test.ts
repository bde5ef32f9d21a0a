// Groups: attached members, names, and what is shown. What holds for every group is in
// test/conformance/groups*.test.ts.
import { inspect } from 'node:util'
import { attachLimiter, createLimiter, group, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises } from './support.js'

const KEYS = { account: 'alice', address: 'home' }

/** A group of 5 in a minute by account, and of 8 in an hour by address. */
function logins() {
  const clock = manualClock(0)
  const more = { maxKeys: 20, clock }
  const byAccount = createLimiter({ limit: 5, window: '1m', granularity: '1s', ...more })
  const byAddress = createLimiter({ limit: 8, window: '1h', granularity: '1m', ...more })
  const both = group({ account: byAccount, address: byAddress })
  return { byAccount, byAddress, both }
}

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

test('a decision is printed, serialized and copied without its internals', () => {
  const { both } = logins()
  both.check(KEYS, 5)
  for (const decision of [both.check(KEYS), both.check(KEYS, 6), both.peek(KEYS, 0)]) {
    const { toJSON, ...fields } = decision.toJSON() as ReturnType<typeof decision.toJSON> & { toJSON?: never }
    assert.equal([toJSON, decision.source], [undefined, undefined])
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
