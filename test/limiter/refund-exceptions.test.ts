// run: typescript
// What `refund(decision)` gives back after blocks, refunds by key and refusals of another rule: all that was charged,
// but for the cases of docs/explanation/guarantees.md.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AlgorithmName, createLimiter, group, manualClock } from '../../src/index.js'

const ALGORITHMS: readonly AlgorithmName[] = [
  'sliding-window',
  'sliding-counter',
  'sliding-log',
  'fixed-window',
  'token-bucket',
]

function make(algorithm: AlgorithmName) {
  const clock = manualClock(1e6)
  return { clock, limiter: createLimiter({ limit: 10, window: 60_000, algorithm, clock, maxKeys: 50 }) }
}

for (const algorithm of ALGORITHMS) {
  test(`${algorithm}: a decision is given back after a block that was ended`, () => {
    const { limiter } = make(algorithm)
    const decision = limiter.check('a', 4)
    limiter.block('a', 100)
    limiter.unblock('a')
    assert.is(limiter.refund(decision), 4)
    assert.is(limiter.usage('a'), 0)
  })

  test(`${algorithm}: and after a block that has ended by itself`, () => {
    const { clock, limiter } = make(algorithm)
    const decision = limiter.check('a', 4)
    limiter.block('a', 100)
    clock.advance(200)
    assert.is(limiter.check('a').allowed, true)
    assert.is(limiter.refund(decision), 4)
    assert.is(limiter.usage('a'), 1)
  })

  test(`${algorithm}: a refund by key and a decision never take the same units, with a block between`, () => {
    const { limiter } = make(algorithm)
    const decision = limiter.check('a', 4)
    limiter.block('a', 100)
    limiter.unblock('a')
    limiter.refund('a', 4)
    limiter.check('a', 5)
    assert.is(limiter.refund(decision), 0)
    assert.is(limiter.usage('a'), 5)
  })
}

test('sliding-log: a decision before a refund by key gives nothing back, in whatever millisecond', () => {
  const { clock, limiter } = make('sliding-log')
  limiter.check('a')
  clock.advance(5000)
  const decision = limiter.check('a', 4)
  limiter.refund('a', 1)
  assert.is(limiter.refund(decision), 0)
  assert.is(limiter.usage('a'), 4)
})

for (const [afterMs, refunded] of [
  [23_000, 2],
  [25_000, 0],
] as const) {
  test(`token-bucket: a block leaves a charge of 2 tokens of 12 s each, ${afterMs} ms ago: ${refunded}`, () => {
    const clock = manualClock(1e6)
    const rule = { limit: 5, window: 60_000, algorithm: 'token-bucket' } as const
    const limiter = createLimiter({ ...rule, clock, maxKeys: 50 })
    limiter.check('a', 2)
    const decision = limiter.check('a', 2)
    clock.advance(afterMs)
    limiter.block('a', 1)
    limiter.unblock('a')
    assert.is(limiter.refund(decision), refunded)
  })

  test(`token-bucket: so does a request that another rule refused, ${afterMs} ms ago: ${refunded}`, () => {
    const clock = manualClock(1e6)
    const bucket = { name: 'bucket', limit: 5, window: 60_000, algorithm: 'token-bucket' } as const
    const rules = [bucket, { name: 'second', limit: 4, window: 1000 }]
    const limiter = createLimiter({ rules, clock, maxKeys: 50 })
    limiter.check('a', 2)
    const decision = limiter.check('a', 2)
    assert.is(limiter.check('a').allowed, false)
    clock.advance(afterMs)
    assert.is(limiter.refund(decision), refunded)
  })

  test(`token-bucket: and one that another member of a group refused, ${afterMs} ms ago: ${refunded}`, () => {
    const clock = manualClock(1e6)
    const rule = { limit: 5, window: 60_000, algorithm: 'token-bucket' } as const
    const bucket = createLimiter({ ...rule, clock, maxKeys: 50 })
    const both = group({ bucket, second: createLimiter({ limit: 4, window: 1000, clock, maxKeys: 50 }) })
    both.check({ bucket: 'a', second: 'a' }, 2)
    const decision = both.check({ bucket: 'a', second: 'a' }, 2)
    assert.is(both.check({ bucket: 'a', second: 'a' }).member, 'second')
    clock.advance(afterMs)
    assert.is(both.refund(decision), refunded)
  })
}

for (const algorithm of ALGORITHMS) {
  test(`${algorithm}: a decision is given back after a request that another member of a group refused`, () => {
    const { clock, limiter } = make(algorithm)
    const second = createLimiter({ limit: 4, window: 60_000, clock, maxKeys: 50 })
    const both = group({ limiter, second })
    const keys = { limiter: 'a', second: 'a' }
    const decision = both.check(keys, 4)
    assert.is(both.check(keys).member, 'second')
    assert.is(both.refund(decision), 4)
    assert.equal([limiter.usage('a'), second.usage('a')], [0, 0])
  })
}

test.run()
