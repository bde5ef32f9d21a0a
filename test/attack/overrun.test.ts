// run: also-full
// A table for half of the keys in use, with each value of `onFull`: checks its guarantees by
// an exact log of every key.
import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { newKeys } from './new-keys.js'
import { LIMIT, overrun } from './overrun.js'

const PROMISES = {
  deny: 'no key exceeds its limit; new keys are refused only while every way is taken, and counted in noRoom',
  allow: 'no counted key exceeds its limit or is refused early; the others pass uncounted',
  evict: 'all keys together never exceed the capacity of the table in a window',
} as const

for (const [keys, windows] of sized<readonly [keys: number, windows: number][]>({
  quick: [[40, 250]],
  full: [
    [40, 400],
    [2_000, 25],
  ],
})) {
  for (const onFull of ['deny', 'allow', 'evict'] as const) {
    test(`${onFull}, ${keys} keys in a table for ${keys / 2}: ${PROMISES[onFull]}`, () => {
      const report = overrun(onFull, keys, windows, keys, () => {})
      assert.ok(report.admitted > 20_000, JSON.stringify(report))
      if (onFull === 'deny') assert.ok(report.noRoom > 1_000, JSON.stringify(report))
      if (onFull === 'allow') assert.ok(report.uncounted > 1_000, JSON.stringify(report))
      if (onFull === 'evict') assert.ok(report.evicted > 1_000, JSON.stringify(report))
      const { most, over, admitted } = report
      console.log(
        `${onFull}, ${keys} keys: at most ${most} of ${LIMIT} to one, ${over} of ${admitted} beyond`,
      )
    })
  }
}

for (const limit of [5, 20]) {
  test(`evict: about ${limit} new keys per way in a window use up all capacity, also of keys in use`, () => {
    const { ways, admitted, most, leftAfter, noRoom } = newKeys('evict', limit, 2_000, 1, () => {})
    const units = ways * limit
    assert.ok(admitted <= units && admitted > 0.9 * units, `${admitted} of ${units}`)
    assert.ok(most > 0.9 * units && most < 1.3 * units, `${most}, ${units}`)
    assert.ok(leftAfter < 1, `${leftAfter} % left`)
    assert.is(noRoom, 0)
  })
}

for (const onFull of ['deny', 'allow'] as const) {
  test(`${onFull}: as many new keys as ways are counted, and keys in use keep their counts`, () => {
    const report = newKeys(onFull, 5, 2_000, 1, () => {})
    const { ways, admitted, leftBefore, leftAfter, evictedLive } = report
    assert.ok(admitted <= ways - 1_000 && admitted > 0.9 * (ways - 1_000), `${admitted} of ${ways}`)
    assert.equal([leftAfter, evictedLive], [leftBefore, 0])
  })
}

test('evict: a new key per request gains exactly the capacity of the table, then nothing until it expires', () => {
  const clock = manualClock(1e9)
  const ways = 32
  const limiter = createLimiter({ limit: LIMIT, window: '1m', granularity: '1s', maxKeys: 20, clock })
  let sprayed = 0
  const spray = () => {
    let admitted = 0
    for (let i = 0; i < 10 * ways * LIMIT; i++) if (limiter.check(`sprayed ${sprayed++}`).allowed) admitted++
    return admitted
  }
  assert.is(spray(), ways * LIMIT)
  for (let second = 0; second < 60; second++) {
    clock.advance(1_000)
    assert.is(spray(), 0, `${second} s later`)
  }
  clock.advance(2_000) // a way is free one granule after its counts have expired
  assert.is(spray(), ways * LIMIT)
})

test.run()
