// run: also-full
// The quick version of `npm run dev -- attack --part collide`.
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER } from '#millrace/memory/layout.js'
import { sized } from '../size.js'
import { boundOf, collide } from './collide.js'
import { percentiles } from './latency.js'

test('keys that crowd a few sets under one seed are spread like random keys under another', () => {
  const keys = sized({ quick: 5_000, full: 20_000 })
  const { bound, known, own, randomFullest, sets } = collide(keys, 1, () => {})
  assert.ok(known.fullest > 10 * bound, `${known.fullest} keys in the fullest set: they do collide`)
  assert.ok(known.evictedLive > keys, 'the keys did not evict each other')
  assert.ok(own.fullest <= bound, `${own.fullest} in the fullest set, of random keys at most ${bound}`)
  assert.ok(randomFullest <= bound, `${randomFullest} of random keys`)
  assert.is(own.evictedLive, 0, 'each key has its own way')
  assert.is(own.strangersRefused, 0)
  console.log(
    `fullest of ${sets} sets: ${known.fullest} known, ${own.fullest} own, ${randomFullest} random keys`,
  )
  console.log(`a decision: known seed ${percentiles(known.decisions)}; own ${percentiles(own.decisions)}`)
})

test('every limiter has its own seed', () => {
  const seeds = Array.from({ length: 50 }, () => {
    const { buffer } = createLimiter({ limit: 1, window: '1m', maxKeys: 1 }).share()
    return new Int32Array(buffer, 4 * HEADER.SEED_0, 2).join()
  })
  assert.is(new Set(seeds).size, seeds.length)
  assert.is(HEADER.SEED_1, HEADER.SEED_0 + 1)
})

test('the bound on the fullest set is slightly above the exact binomial bound', () => {
  const tail = (n: number, p: number, from: number) => {
    let term = (1 - p) ** n
    let sum = 0
    for (let k = 0; k <= n; k++) {
      if (k >= from) sum += term
      term *= ((n - k) / (k + 1)) * (p / (1 - p))
    }
    return sum
  }
  for (const [n, p, sets] of [
    [1_000, 0.01, 1],
    [1_000, 0.01, 100],
    [20_000, 2 / 1_563, 1_563],
  ] as const) {
    const bound = boundOf(n, p, sets)
    assert.ok(sets * tail(n, p, bound) <= 1e-9, 'sound')
    assert.ok(sets * tail(n, p, Math.floor(0.85 * bound)) > 1e-9, 'and no more than it must be')
  }
})

test.run()
