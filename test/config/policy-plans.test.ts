import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { StoredPolicy } from '../../src/config/config-store.js'
import { checkPolicy, type Policy } from '../../src/config/policy.js'
import { DEFAULT_PLAN, memberIn, valueIn } from '../../src/policies/plan.js'
import { PolicyPlans } from '../../src/policies/policy-plans.js'
import { policyShapeOf } from '../../src/policies/policy-shape.js'

const test = suite('the plans of policies')
const DEFAULT: Policy = { limit: 1, window: '1m' }

/** Plans whose members are the texts of their shapes. */
function plansFor(mostPlans = 100) {
  const make = ({ text }: { text: string }) => text
  const shape = policyShapeOf(checkPolicy(DEFAULT))
  const maker = { refusalOf: () => undefined, make }
  const fail = (error: Error) => assert.unreachable(error.message)
  return new PolicyPlans({ limiter: make(shape), shape }, maker, 16, mostPlans, fail)
}

/** A document as a store reads it: nothing in it is shared. */
const read = (key: string, limit: number, version: number, window = '1m'): StoredPolicy => ({
  key,
  policy: { limit, window },
  version,
})

const LIMITS = [10, 100, 1_000]

test('thousands of keys on three plans have three policies, three plans and one window', () => {
  const plans = plansFor()
  const all = Array.from({ length: 3_000 }, (_, i) => plans.planOf(read(`user:${i}`, LIMITS[i % 3]!, i + 1)))
  assert.is(new Set(all.map(({ found }) => found!.policy)).size, 3)
  assert.is(new Set(all.map(({ plan }) => plan)).size, 3)
  assert.equal(
    LIMITS.map((_, i) => valueIn(all[i]!.plan)),
    LIMITS,
  )
  assert.is(plans.members.length, 1)
  for (const [i, { found }] of all.entries())
    assert.equal(found, read(`user:${i}`, LIMITS[i % 3]!, i + 1), 'each key has its own version')
})

test('keys with one prefix share its document, until it changes', () => {
  const plans = plansFor()
  const all = Array.from({ length: 100 }, () => plans.planOf(read('plan:pro:*', 10, 1)).found)
  assert.is(new Set(all).size, 1)
  const changed = plans.planOf(read('plan:pro:*', 10, 2)).found
  assert.equal(changed, read('plan:pro:*', 10, 2))
  assert.is(changed!.policy, all[0]!.policy)
})

test('policies with other windows are others, and keys without one have the default', () => {
  const plans = plansFor()
  const minute = plans.planOf(read('a', 10, 1))
  const hour = plans.planOf(read('a', 10, 1, '1h'))
  assert.is.not(memberIn(minute.plan), memberIn(hour.plan))
  assert.equal(hour.found!.policy, { limit: 10, window: '1h' })
  assert.equal(plans.planOf(undefined), { plan: DEFAULT_PLAN, found: undefined })
})

test('plans that were forgotten are made again', () => {
  const plans = plansFor(3)
  const before = LIMITS.map((limit, i) => plans.planOf(read('a', limit, i)))
  let forgotten = 0
  plans.onForget = () => forgotten++
  plans.planOf(read('b', 7, 1))
  assert.is(forgotten, 1)
  for (const { plan, found } of before) {
    const again = plans.planOf(found)
    assert.is(again.plan, plan)
    assert.is(again.found, found)
  }
})

test.run()
