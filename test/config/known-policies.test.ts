// run: modules
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { KnownPolicies } from '#millrace/config/known-policies.js'
import { documentIn, documentOf, type Policy, parsePolicy } from '#millrace/config/policy.js'

const BOTH: Policy = {
  rules: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'hourly', limit: 1000, window: '1h' },
  ],
}
const textOf = (policy: Policy, version: number) => JSON.stringify(documentOf(policy, version))

/** What it makes of a text, or its complaint, by either way. */
function resultOf(document: unknown): unknown {
  try {
    return { ...parsePolicy(document, 'key') }
  } catch (error) {
    return (error as Error).message
  }
}

test('each text gives what parsing it gives, the first time and later', () => {
  const known = new KnownPolicies()
  const rest = '"limit":5,"window":"1m"}'
  const texts = [
    textOf({ limit: 5, window: '1m' }, 1_795_000_000_000_000),
    textOf({ limit: 5, window: '1m' }, 7),
    textOf({ limit: 6, window: '1m' }, 8),
    textOf(BOTH, 9),
    textOf(BOTH, 10),
    `{"format":1,"version":0,${rest}`,
    `{"format":1,"version":007,${rest}`,
    `{"format":1,"version":9007199254740993,${rest}`,
    `{"format":2,"version":3,${rest}`,
    `{"format":1,"version":3,"version":4,${rest}`,
    `{"format":1,"version":5,"version":4,${rest}`,
    `{"format":1,"version":3,"format":2,${rest}`,
    '{"format":1,"version":3,"limit":-1,"window":"1m"}',
    '{"format":1,"version":3,"limit":5',
    '{"time_window_sec":1,"capacity":5}',
    '{"format":1,"version":3,"time_window_sec":1,"capacity":5}',
    '',
    'null',
  ]
  for (let round = 0; round < 3; round++)
    for (const text of texts)
      assert.equal(resultOf(known.documentOf(text)), resultOf(documentIn(text)), `round ${round}: ${text}`)
})

test('equal policies are one object, which nobody can change', () => {
  const known = new KnownPolicies()
  const [first, second] = [1, 2].map((version) => parsePolicy(known.documentOf(textOf(BOTH, version)), 'key'))
  assert.is(first!.policy, second!.policy)
  const { rules } = first!.policy as unknown as { rules: { limit: number }[] }
  assert.throws(() => {
    rules[0]!.limit = 1_000_000
  }, TypeError)
  assert.throws(() => rules.pop(), TypeError)
})

test('it forgets what has long not been used, and keeps what is', () => {
  const known = new KnownPolicies()
  const policyOf = (limit: number) =>
    parsePolicy(known.documentOf(textOf({ limit, window: '1m' }, limit)), 'key').policy
  const often = policyOf(1)
  const once = policyOf(2)
  for (let limit = 3; limit < 10_000; limit++) {
    policyOf(limit)
    if (limit % 100 === 0) assert.is(policyOf(1), often)
  }
  assert.is.not(policyOf(2), once)
  assert.equal(policyOf(2), once)
})

test.run()
