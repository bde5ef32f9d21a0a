// Pools whose calls wait while others make so many plans that those from before are forgotten.
import { createLimiter } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FakeStore, stored, turn } from './fake-store.js'
import { assertOwnLimits, policiesOf } from './many-plans.js'

const POOL = {
  default: { limit: 2, window: '1m' },
  maxKeys: 1_000,
  engine: 'pool',
  pool: { maxThreads: 1 },
} as const

test('a batch on a pool decides each key by its own limits, however many plans it needs', async () => {
  const policies = policiesOf(500)
  const limiter = createLimiter({ ...POOL, config: memoryConfig(policies), configCache: { maxKeys: 100 } })
  const keys = Object.keys(policies)
  const batch = await limiter.checkMany(keys, 1, { remaining: true })
  assert.equal(
    [...batch.remaining!],
    keys.map((_, i) => i),
  )
  await limiter.close()
})

test('concurrent calls on a pool go by their own limits, however many plans they need', async () => {
  const limiter = createLimiter({
    ...POOL,
    config: memoryConfig(policiesOf(60)),
    configCache: { maxKeys: 5 },
  })
  await assertOwnLimits(limiter, 60)
  const reservations = await Promise.all(
    Array.from({ length: 60 }, (_, i) => limiter.reserve(`k${i}`, 0, { limit: { h: 7 } })),
  )
  assert.equal(
    reservations.map(({ decision }) => decision.rules.map(({ limit }) => limit)),
    Array.from({ length: 60 }, (_, i) => [i + 1, 7]),
    'limits of the call take the place of those of the policy, rule by rule',
  )
  await limiter.close()
})

test('concurrent calls wait for a store that answers late, and go by their own limits', async () => {
  const policies = policiesOf(60)
  const store = new FakeStore()
  const limiter = createLimiter({
    ...POOL,
    config: store,
    configCache: { maxKeys: 5, deadline: '1m' },
  })
  await limiter.ready()
  const decided = assertOwnLimits(limiter, 60)
  await turn()
  // All in the same turn: each call goes on when the plans of all others have been made.
  for (const { keys, answer } of store.questions.splice(0)) answer(stored(keys[0]!, policies[keys[0]!]!))
  await decided
  await limiter.close()
})

test.run()
