// run: typescript
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const MAX_LIMIT = 2 ** 22 - 2

/** Counts how often `act` calls each of these operations. */
function countCalls<Name extends 'load' | 'compareExchange'>(
  names: readonly Name[],
  act: () => void,
): number[] {
  const atomics = Atomics as unknown as Record<Name, (...words: unknown[]) => unknown>
  const originals = names.map((name) => atomics[name])
  const calls = names.map(() => 0)
  names.forEach((name, i) => {
    atomics[name] = (...words) => {
      calls[i]!++
      return originals[i]!(...words)
    }
  })
  try {
    act()
  } finally {
    names.forEach((name, i) => {
      atomics[name] = originals[i]!
    })
  }
  return calls
}

test('an admission is two compare-exchanges, and one atomic load on processors that reorder reads', () => {
  const limiter = createLimiter({ limit: 1_000, window: '1m', maxKeys: 10, clock: { now: () => 1e6 } })
  assert.ok(limiter.check('a').allowed)
  const calls = countCalls(['load', 'compareExchange'], () => {
    for (let i = 0; i < 100; i++) assert.ok(limiter.check('a').allowed)
  })
  assert.equal(calls, [process.arch === 'x64' ? 0 : 100, 200])
})

/** A clock whose reading is not an operation on the limiter's memory. */
function limiterByTicks() {
  let now = 1e6
  const clock = { now: () => now }
  const limiter = createLimiter({ limit: MAX_LIMIT, window: '1m', granularity: '1s', maxKeys: 10, clock })
  const advance = (ms: number) => {
    now += ms
  }
  return { limiter, advance }
}

test('the first admission in a granule is four compare-exchanges: newest reading, tick, bucket, admission word', () => {
  const { limiter, advance } = limiterByTicks()
  limiter.check('a')
  for (let i = 0; i < 60; i++) {
    advance(1_000)
    const [calls] = countCalls(['compareExchange'], () => assert.ok(limiter.check('a').allowed))
    assert.is(calls, 4, `granule ${i}`)
  }
})

test('a refusal of a key known to be full in this granule is at most one atomic load', () => {
  const { limiter } = limiterByTicks()
  limiter.check('full', MAX_LIMIT)
  limiter.check('full')
  const calls = countCalls(['load', 'compareExchange'], () => assert.not(limiter.check('full').allowed))
  assert.equal(calls, [process.arch === 'x64' ? 0 : 1, 0])
})

test('a refusal of a key known to be full writes nothing, and neither does any operation without effect', () => {
  const { limiter } = limiterByTicks()
  limiter.check('full', MAX_LIMIT)
  limiter.check('full')
  limiter.penalize('fullest', MAX_LIMIT + 1)
  limiter.refund(limiter.check('empty'))
  limiter.block('blocked', Number.POSITIVE_INFINITY)
  const [calls] = countCalls(['compareExchange'], () => {
    for (const key of ['full', 'blocked']) assert.not(limiter.check(key).allowed)
    assert.ok(limiter.penalize('fullest', 1))
    assert.is(limiter.refund('empty', 1), 0)
    assert.is(limiter.unblock('empty'), false)
    assert.is(limiter.usage('full'), MAX_LIMIT)
  })
  assert.is(calls, 0)
})

test.run()
