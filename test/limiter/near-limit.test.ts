import {
  attachLimiter,
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterOptions,
  manualClock,
  type PoolLimiterOptions,
} from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, START_MS } from './support.js'

/** Numbers from 0 to below 1 that look random, the same in each run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const RULES = {
  'a sliding window': { limit: 20, window: '1m' },
  'a smooth window': { limit: 20, window: '1m', edge: 'smooth' },
  'a window of many buckets': { limit: 20, window: '10m', granularity: '1s' },
  'a sliding log': { limit: 20, window: '1m', algorithm: 'sliding-log' },
  'a sliding counter': { limit: 20, window: '1m', algorithm: 'sliding-counter' },
  'a fixed window': { limit: 20, window: '1m', algorithm: 'fixed-window' },
  'a token bucket': { limit: 20, window: '1m', algorithm: 'token-bucket' },
  'a rule with units': { limit: 20_480, window: '1m', unit: 1_024 },
  'a rule that is not enforced': { limit: 20, window: '1m', shadow: true },
  'several rules': {
    rules: [
      { name: 'burst', limit: 7, window: '10s' },
      { name: 'minute', limit: 20, window: '1m', algorithm: 'token-bucket' },
      { name: 'hour', limit: 100, window: '1h', algorithm: 'fixed-window' },
    ],
  },
  'several rules with units': {
    rules: [
      { name: 'calls', limit: 20, window: '1m' },
      { name: 'bytes', limit: 20_480, window: '1m', unit: 1_024 },
    ],
  },
} as const

const SHARE = 0.8

const isNear = ({ limit, remaining }: { limit: number; remaining: number }, share: number) =>
  limit - remaining >= limit * share

/** The admissions of a decision and of its rules that are near the limit, by the figures of the decisions. */
class Seen {
  nearLimit = 0
  readonly rules: Record<string, number> = {}

  see(decision: Decision, share: number): void {
    let hasNear = false
    for (const part of decision.rules) {
      this.rules[part.rule] ??= 0
      const isShadowed = part.shadow?.allowed === false
      if (!decision.allowed || isShadowed || !isNear(part, share)) continue
      this.rules[part.rule]!++
      hasNear = true
    }
    if (hasNear) this.nearLimit++
  }
}

for (const [name, rules] of Object.entries(RULES)) {
  for (const share of [0.5, 0.8, 1]) {
    test(`the admissions near the limit are those that the figures say: ${name}, from ${100 * share} % on`, async () => {
      const clock = manualClock(START_MS)
      const options = { ...rules, clock, maxKeys: 50, nearLimit: share } as unknown as LimiterOptions
      // The figures of the one are not read, so it decides by its fast paths.
      const [unread, read] = [createLimiter(options), createLimiter(options)]
      const attached = attachLimiter(unread.share())
      const random = randomFrom(7)
      const seen = new Seen()
      const unit = name === 'a rule with units' ? 1_024 : 1
      for (let i = 0; i < 3_000; i++) {
        const key = `key ${Math.floor(random() ** 2 * 12)}`
        const cost = Math.ceil(random() ** 3 * 3) * unit
        const decision = read.check(key, cost)
        assert.is((random() < 0.5 ? unread : attached).check(key, cost).allowed, decision.allowed)
        seen.see(decision, share)
        clock.advance(Math.floor(random() ** 4 * 4_000))
      }
      assert.ok(seen.nearLimit > 0)
      const [own, others, attachedOwn] = [read, unread, attached].map((limiter) => limiter.stats().own)
      assert.is(own!.nearLimit, seen.nearLimit, 'with figures')
      assert.is(others!.nearLimit + attachedOwn!.nearLimit, seen.nearLimit, 'without figures')
      for (const [rule, near] of Object.entries(seen.rules)) {
        assert.is(own!.rules[rule]!.nearLimit, near, rule)
        assert.is(others!.rules[rule]!.nearLimit + attachedOwn!.rules[rule]!.nearLimit, near, rule)
      }
      await Promise.all([unread.close(), read.close(), attached.close()])
    })
  }
}

for (const [name, rules] of Object.entries(RULES)) {
  for (const engine of ['inline', 'pool'] as const) {
    test(`the keys of a batch count as they do alone, also those that stand twice: ${name}, ${engine}`, async () => {
      const clock = manualClock(START_MS)
      const options = { ...rules, clock, maxKeys: 50, nearLimit: SHARE } as unknown as LimiterOptions
      const alone = createLimiter(options)
      const batches = createLimiter({ ...options, engine } as PoolLimiterOptions)
      const random = randomFrom(13)
      const unit = name === 'a rule with units' ? 1_024 : 1
      for (let i = 0; i < 60; i++) {
        const keys = Array.from(
          { length: 1 + Math.floor(random() * 60) },
          () => `key ${Math.floor(random() ** 2 * 30)}`,
        )
        const costs = keys.map(() => Math.floor(random() ** 3 * 4) * unit)
        await batches.checkMany(keys, costs, { remaining: random() < 0.3 })
        for (const [k, key] of keys.entries()) alone.check(key, costs[k])
        clock.advance(Math.floor(random() * 4_000))
      }
      const [{ own }, one] = [await batches.stats(), alone.stats().own]
      assert.ok(one.nearLimit > 0 && one.refused + one.shadowRefused > 0)
      assert.equal(own, one)
      await Promise.all([batches.close(), alone.close()])
    })
  }
}

/** What changes the use of a key other than a decision, also to nothing. */
const CHANGES: readonly ((limiter: Limiter, key: string, units: number, last: Decision) => unknown)[] = [
  (limiter, key) => limiter.clear(key),
  (limiter) => limiter.clearAll(),
  (limiter, key, units) => limiter.refund(key, units),
  (limiter, _, __, last) => limiter.refund(last),
  (limiter, key, units) => limiter.penalize(key, units),
  (limiter, key, units) => limiter.block(key, units * 100),
  (limiter, key) => limiter.unblock(key),
]

for (const [name, rules] of Object.entries(RULES)) {
  test(`so they are after keys were cleared, refunded, penalized and blocked: ${name}`, async () => {
    const clock = manualClock(START_MS)
    const options = { ...rules, clock, maxKeys: 50, nearLimit: SHARE } as unknown as LimiterOptions
    const [unread, read] = [createLimiter(options), createLimiter(options)]
    const random = randomFrom(11)
    const seen = new Seen()
    const unit = name === 'a rule with units' ? 1_024 : 1
    for (let i = 0; i < 6_000; i++) {
      const key = `key ${Math.floor(random() * 3)}`
      const cost = Math.ceil(random() ** 3 * 3) * unit
      const [decision, other] = [read.check(key, cost), unread.check(key, cost)]
      assert.is(other.allowed, decision.allowed)
      seen.see(decision, SHARE)
      if (random() < 0.1) {
        const change = CHANGES[Math.floor(random() * CHANGES.length)]!
        change(read, key, cost, decision)
        change(unread, key, cost, other)
      }
      clock.advance(Math.floor(random() ** 4 * 4_000))
    }
    assert.ok(seen.nearLimit > 0)
    assert.is(read.stats().own.nearLimit, seen.nearLimit, 'with figures')
    assert.is(unread.stats().own.nearLimit, seen.nearLimit, 'without figures')
    await Promise.all([unread.close(), read.close()])
  })
}

test('a key that was cleared as often as epochs have numbers is near its limit when it is', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ limit: 20, window: '10s', clock, nearLimit: SHARE })
  for (let clears = 1; clears <= 520; clears++) {
    const key = `key ${clears}`
    limiter.check(key, 12)
    clock.advance(10_500)
    limiter.check(key, 5) // the total has 12 units that have left the window
    for (let i = 0; i < clears; i++) {
      limiter.clear(key)
      limiter.check(key)
    }
    limiter.clear(key)
    const before = limiter.stats().own.nearLimit
    for (let i = 0; i < 20; i++) limiter.check(key)
    assert.is(limiter.stats().own.nearLimit - before, 5, `after ${clears}`)
  }
  await limiter.close()
})

test('a pool counts by the share, too, and its batches by rule', async () => {
  const rules = [{ name: 'minute', limit: 10, window: '1m' } as const]
  const pool = createLimiter({ rules, engine: 'pool', nearLimit: 0.5, clock: manualClock(START_MS) })
  for (let i = 0; i < 12; i++) await pool.check('key')
  assert.is((await pool.stats()).own.rules.minute!.nearLimit, 6)
  await pool.checkMany(['key', 'other'])
  const { own } = await pool.stats()
  assert.equal([own.admitted, own.refused], [11, 3])
  assert.equal([own.rules.minute!.admitted, own.rules.minute!.refused], [11, 3])
  await pool.close()
})

test('a batch of a pool by several rules is admitted by all of them', async () => {
  const rules = [
    { name: 'minute', limit: 10, window: '1m' },
    { name: 'hour', limit: 1, window: '1h' },
  ] as const
  const pool = createLimiter({ rules, engine: 'pool', clock: manualClock(START_MS) })
  await pool.checkMany(['key', 'other', 'key'])
  const { admitted, refused, rules: own } = (await pool.stats()).own
  assert.equal([admitted, refused, own.minute!.admitted, own.hour!.admitted], [2, 1, 2, 2])
  await pool.close()
})

test('a share that is none is refused', () => {
  for (const nearLimit of [0, -1, 1.1, Number.NaN, '0.8', null])
    assertRaises(
      () => createLimiter({ limit: 1, window: '1m', nearLimit } as unknown as LimiterOptions),
      'ERR_MILLRACE_INVALID_OPTION',
      'nearLimit',
    )
})

test.run()
