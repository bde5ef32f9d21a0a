// run: also-long

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { assertRaises, limiterWith, START_MS } from './support.js'

const KEYS = ['a', 'b', 'c', 'd', 'e']
const batch = fc.record({
  entries: fc.array(
    fc.record({
      key: fc.constantFrom(...KEYS),
      byHandle: fc.boolean(),
      cost: fc.integer({ min: 0, max: 8 }),
    }),
    { maxLength: 150 },
  ),
  how: fc.constantFrom('keys', 'packed'),
  costs: fc.constantFrom('none', 'one', 'each', 'typed'),
  advanceMs: fc.integer({ min: 0, max: 3_000 }),
  before: fc.constantFrom('nothing', 'block', 'penalize', 'lower'),
})

for (const edge of ['strict', 'smooth'] as const) {
  test(`${edge}: checkMany gives every key the result of single checks in the same order`, () => {
    const tally = { allowed: 0, denied: 0 }
    fc.assert(
      fc.property(fc.array(batch, { minLength: 1, maxLength: 8 }), (batches) => {
        const options = { limit: 7, window: 6_000, granularity: 1_000, edge }
        const many = limiterWith(options)
        const single = limiterWith(options)
        for (const { entries, how, costs, advanceMs, before } of batches) {
          for (const { clock, limiter } of [many, single]) {
            clock.advance(advanceMs)
            if (before === 'block') limiter.block('a', 2_000)
            if (before === 'penalize') limiter.penalize('b', 9)
            if (before === 'lower') limiter.update('default', { limit: 4 })
          }
          const { limiter } = many
          const keys = entries.map(({ key, byHandle }) => (byHandle ? limiter.handle(key) : key))
          const each = entries.map(({ cost }) => cost)
          const given = { none: undefined, one: 2, each, typed: Uint32Array.from(each) }[costs]
          const decided = limiter.checkMany(how === 'packed' ? limiter.pack(keys) : keys, given, {
            remaining: true,
          })
          assert.is(decided.length, entries.length)
          const remaining = entries.map(({ key, cost }, i) => {
            const alone = single.limiter.check(key, costs === 'none' ? 1 : costs === 'one' ? 2 : cost)
            assert.is(decided.allowed[i], Number(alone.allowed))
            tally[alone.allowed ? 'allowed' : 'denied']++
            return alone.remaining
          })
          assert.equal([...decided.remaining!], remaining)
          const { allowed, denied, keys: places } = many.limiter.stats()
          const expected = single.limiter.stats()
          assert.equal([allowed, denied, places], [expected.allowed, expected.denied, expected.keys])
        }
        for (const key of KEYS) assert.is(many.limiter.usage(key), single.limiter.usage(key))
      }),
      { numRuns: 300 },
    )
    assert.ok(tally.allowed > 1_000 && tally.denied > 1_000, JSON.stringify(tally))
  })
}

test('retryAfterMs(i) is 0 for an admitted entry, else that of a check of the entry', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('a', 3)
  clock.advance(7_000)
  const decided = limiter.checkMany(['a', 'a', 'b', 'c', 'c'], [2, 1, 6, 5, 4])
  assert.equal([...decided.allowed], [1, 0, 0, 1, 0])
  limiter.block('b', '1h')
  const expected = [
    0,
    limiter.check('a', 1).retryAfterMs,
    Number.POSITIVE_INFINITY,
    0,
    limiter.check('c', 4).retryAfterMs,
  ]
  assert.equal(
    expected.map((_, i) => decided.retryAfterMs(i)),
    expected,
  )
  assert.ok(expected[4]! > expected[1]! && expected[1]! > 0)
})

test('retryAfterMs(i) is relative to the decision', () => {
  const { clock, limiter } = limiterWith()
  limiter.check('a', 5)
  const decided = limiter.checkMany(['a'])
  const { retryAfterMs } = limiter.check('a')
  clock.advance(20_000)
  limiter.check('b')
  assert.is(decided.retryAfterMs(0), retryAfterMs)
})

test('a batch has `remaining` only if it was requested', () => {
  const { limiter } = limiterWith()
  assert.is(limiter.checkMany(['a']).remaining, undefined)
  assert.is(limiter.checkMany(['a'], 1, {}).remaining, undefined)
  assert.is(limiter.checkMany(['a'], 1, { remaining: false }).remaining, undefined)
  const { allowed, remaining } = limiter.checkMany(['a', 'b'], 1, { remaining: true })
  assert.instance(allowed, Uint8Array)
  assert.instance(remaining, Int32Array)
  assert.equal([...remaining!], [1, 4])
})

test('an empty batch decides nothing', () => {
  const { limiter } = limiterWith()
  for (const keys of [[], limiter.pack([])]) {
    for (const costs of [undefined, 3, [], new Float64Array(0)]) {
      const decided = limiter.checkMany(keys, costs, { remaining: true })
      assert.equal([decided.length, decided.allowed.length, decided.remaining!.length], [0, 0, 0])
      assertRaises(() => decided.retryAfterMs(0), 'ERR_MILLRACE_INVALID_OPTION', 'i')
    }
  }
  const { allowed, denied } = limiter.stats()
  assert.equal([allowed, denied], [0, 0])
})

test('repeated entries of one key are admitted up to the limit, in order', () => {
  const { limiter } = limiterWith({ limit: 100 })
  const { allowed } = limiter.checkMany(new Array(1_000).fill('key'))
  assert.equal([...allowed], [...new Array(100).fill(1), ...new Array(900).fill(0)])
})

test('a smaller cost after a refused one can be admitted', () => {
  const { limiter } = limiterWith()
  const { allowed, remaining } = limiter.checkMany(['a', 'a', 'a'], [3, 4, 2], { remaining: true })
  assert.equal([...allowed], [1, 0, 1])
  assert.equal([...remaining!], [2, 2, 0])
})

test('a batch keeps its costs: changing the array afterwards changes no result', () => {
  const { limiter } = limiterWith()
  limiter.check('a', 3)
  const costs = [3]
  const decided = limiter.checkMany(['a'], costs)
  costs[0] = 6
  assert.is(decided.retryAfterMs(0), limiter.check('a', 3).retryAfterMs)
})

test('a batch on a full table gives the results of single checks, under each onFull', () => {
  for (const onFull of ['evict', 'deny', 'allow'] as const) {
    const many = limiterWith({ onFull, limit: 50 })
    const keys = Array.from({ length: 100 }, (_, i) => `key ${i}`)
    const decided = many.limiter.checkMany(keys, 2, { remaining: true })
    const { noRoom, evictedLive } = many.limiter.stats()
    assert.is(onFull === 'evict' ? evictedLive : noRoom, 68)
    for (let i = 0; i < 32; i++) assert.equal([decided.allowed[i], decided.remaining![i]], [1, 48])
    for (let i = 32; i < 100; i++) {
      const remaining = { evict: decided.remaining![i], deny: 0, allow: 50 }[onFull]
      assert.equal(
        [decided.allowed[i], decided.remaining![i]],
        [onFull === 'deny' ? 0 : 1, remaining],
        onFull,
      )
      if (onFull === 'deny') assert.is(decided.retryAfterMs(i), many.limiter.check(keys[i]!).retryAfterMs)
    }
    if (onFull === 'evict')
      assert.is(decided.remaining![99], 50 - 2 - 2 * Math.ceil(68 / 32), 'counts are inherited')
  }
})

/** A manual clock that calls `act` at its `nth` reading after it was armed. */
function clockThatActs(act: () => void) {
  let left = Number.POSITIVE_INFINITY
  const now = () => {
    if (--left === 0) act()
    return START_MS
  }
  return { clock: { now }, arm: (nth: number) => (left = nth) }
}

test('each decision of a batch uses the limit of its moment', () => {
  for (const limit of [3, 9]) {
    const { clock, arm } = clockThatActs(() => limiter.update('default', { limit }))
    const { limiter } = limiterWith({ clock, maxKeys: 1_000 })
    const keys = Array.from({ length: 64 }, (_, i) => `${i}`)
    const twice = [...keys, ...keys]
    limiter.checkMany(keys, 4)
    arm(2) // a batch reads the clock at every 64th key
    const { allowed, remaining } = limiter.checkMany(twice, 1, { remaining: true })
    const first = [...allowed].slice(0, 64)
    const second = [...allowed].slice(64)
    assert.equal(new Set(first), new Set([1]), `before the limit was ${limit}`)
    assert.equal(new Set(second), new Set([limit === 9 ? 1 : 0]), `after the limit was ${limit}`)
    assert.equal(new Set([...remaining!].slice(64)), new Set([limit === 9 ? 3 : 0]))
    arm(Number.POSITIVE_INFINITY)
  }
})

test('retryAfterMs(i) of an entry refused before the limit was raised is by the limit that refused it', () => {
  const { clock, arm } = clockThatActs(() => limiter.update('default', { limit: 100 }))
  const { limiter } = limiterWith({ clock, maxKeys: 1_000 })
  const keys = Array.from({ length: 128 }, (_, i) => `${i}`)
  limiter.checkMany(keys, 3)
  arm(2)
  const batch = limiter.checkMany(keys, 6)
  assert.equal([batch.allowed[0], batch.allowed[127]], [0, 1])
  assert.is(batch.retryAfterMs(0), Number.POSITIVE_INFINITY)
  assert.is(batch.retryAfterMs(127), 0)
})

test.run()
