// What is no decision of this limiter, though it looks like one, is refused by name by every limiter and group.
import { createLimiter, group, manualClock } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf } from '../conformance/suite.js'

const test = suite('foreign objects')
const options = { maxKeys: 20, clock: manualClock(1e6) }
const ONE = { limit: 5, window: '1m' } as const
const TWO = {
  rules: [
    { name: 'a', ...ONE },
    { name: 'b', limit: 9, window: '1h' },
  ],
} as const
const UNIT = { limit: '5KB', window: '1m', unit: '1KB' } as const

const single = () => createLimiter({ ...ONE, ...options })
const pool = { engine: 'pool', pool: { minThreads: 1, maxThreads: 1 } } as const
const SUBJECTS = {
  'one rule': single,
  'two rules': () => createLimiter({ ...TWO, ...options }),
  'a unit': () => createLimiter({ ...UNIT, ...options }),
  policies: () => createLimiter({ config: memoryConfig({}), default: ONE, ...options }),
  'a pool': () => createLimiter({ ...ONE, ...options, ...pool }),
  'a pool with two rules': () => createLimiter({ ...TWO, ...options, ...pool }),
  'a pool with a unit': () => createLimiter({ ...UNIT, ...options, ...pool }),
}

/** Objects that are no decision of a limiter. */
function foreign(decision: object): readonly object[] {
  const prototype = Object.getPrototypeOf(decision)
  const { proxy, revoke } = Proxy.revocable(decision, {})
  revoke()
  return [
    proxy,
    JSON.parse(JSON.stringify({ retryAfterMs: 0, ...decision })),
    Object.freeze({ ...decision, rules: [] }),
    {
      get retryAfterMs(): number {
        throw new Error('a getter that throws')
      },
    },
    new Proxy(decision, {}),
    Object.create(decision),
    Object.create(prototype),
    Object.setPrototypeOf({ retryAfterMs: 0 }, prototype),
    { ...decision, retryAfterMs: 0 },
  ]
}

for (const [name, make] of Object.entries(SUBJECTS)) {
  test(`${name}: a proxy, a child and a copy of a decision are refused, and the decision itself is given back`, async () => {
    const limiter = make()
    const decision = await limiter.check('a', 2)
    for (const object of [...foreign(decision), single().check('a')])
      assert.is(await codeOf(async () => limiter.refund(object as never)), 'ERR_MILLRACE_FOREIGN_DECISION')
    assert.is((await limiter.usage('a')) > 0, true)
    assert.ok((await limiter.refund(decision)) > 0)
    const frozen = Object.freeze(await limiter.check('a', 2))
    assert.ok((await limiter.refund(frozen)) > 0)
    assert.is(await limiter.refund(frozen), 0)
    await limiter.close()
  })
}

test('a group', async () => {
  const members = group({ a: single(), b: single() })
  const decision = members.check({ a: 'x', b: 'y' }, 2)
  for (const object of [...foreign(decision), decision.members.a])
    assert.is(await codeOf(async () => members.refund(object as never)), 'ERR_MILLRACE_FOREIGN_DECISION')
  assert.is(members.refund(decision), 2)
})

test('usage takes the window that the rule shows, of every bucket', () => {
  for (const [limit, window, burst] of [
    [20, '1m', 5],
    [7, '1m', 3],
    [3, '1h', 13],
    [5, '1m', 50],
    [100, '7s', 33],
  ] as const) {
    const limiter = createLimiter({ limit, window, burst, algorithm: 'token-bucket', ...options })
    limiter.check('a', 2)
    for (const own of [window, limiter.rule.windowMs]) assert.is(limiter.usage('a', own), 2)
    assert.throws(() => limiter.usage('a', 100 * limiter.rule.windowMs), /lastMs/)
  }
})

test.run()
