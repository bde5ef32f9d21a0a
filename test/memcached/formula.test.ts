// run: once
// The formula of a sliding counter, in whole numbers, against its definition in fractions.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Counted, untilAtMost, usedUnits, windowAt } from '#millrace/remote/sliding-counter.js'
import { random } from '../../bench/random.js'
import { readText } from '../package/root.js'

const below = (most: number) => Math.floor(Math.random() * most)

/** The definition: admitted if previous * (windowMs - elapsedMs) + current * windowMs <= limit * windowMs. */
const fits = ({ previous, current, windowMs, elapsedMs }: Counted, limit: number): boolean =>
  BigInt(previous) * BigInt(windowMs - elapsedMs) + BigInt(current) * BigInt(windowMs) <=
  BigInt(limit) * BigInt(windowMs)

/** The same counters, so many milliseconds later. */
function later(counted: Counted, ms: number): Counted {
  const { windowMs, current } = counted
  const { index, elapsedMs } = windowAt(counted.elapsedMs + ms, windowMs)
  if (index === 0) return { ...counted, elapsedMs }
  return { windowMs, elapsedMs, previous: index === 1 ? current : 0, current: 0 }
}

test('used units round up, so that whole units decide as the definition does', () => {
  for (let i = 0; i < 20_000; i++) {
    const [most, longest] = i % 2 === 0 ? [12, 20] : [4_194_302, 366 * 86_400_000]
    const windowMs = 1 + below(longest)
    const counted = { windowMs, elapsedMs: below(windowMs), previous: below(most), current: below(most) }
    const used = usedUnits(counted)
    assert.ok(fits(counted, used), JSON.stringify(counted))
    assert.not(fits(counted, used - 1), JSON.stringify(counted))
  }
})

test('the wait ends at the first millisecond at which enough units have left', () => {
  let waits = 0
  for (let i = 0; i < 20_000; i++) {
    const [units, longest] = i % 2 === 0 ? [12, 20] : [4_194_302, 366 * 86_400_000]
    const windowMs = 1 + below(longest)
    const counted = { windowMs, elapsedMs: below(windowMs), previous: below(units), current: below(units) }
    const most = below(units)
    const ms = untilAtMost(most, counted)
    assert.ok(usedUnits(later(counted, ms)) <= most, JSON.stringify({ ...counted, most, ms }))
    if (ms === 0) continue
    waits++
    assert.ok(usedUnits(later(counted, ms - 1)) > most, JSON.stringify({ ...counted, most, ms }))
  }
  assert.ok(waits > 1000)
})

test('units that no wait lets in', () => {
  assert.is(
    untilAtMost(-1, { windowMs: 10, elapsedMs: 0, previous: 0, current: 0 }),
    Number.POSITIVE_INFINITY,
  )
})

/** Admits random requests of 100 a minute, which come independently of each other, for 2,000 windows. */
function traffic(load: number): { fullest: number; admitted: number } {
  const [limit, windowMs, windows] = [100, 60_000, 2_000]
  const next = random(1)
  let counted: Counted = { windowMs, elapsedMs: 0, previous: 0, current: 0 }
  const admittedMs: number[] = []
  let oldest = 0
  let fullest = 0
  for (let nowMs = 0, lastMs = 0; nowMs < windows * windowMs; ) {
    nowMs -= (Math.log(1 - next()) * windowMs) / (limit * load)
    counted = later(counted, Math.floor(nowMs) - lastMs)
    lastMs = Math.floor(nowMs)
    if (usedUnits(counted) + 1 > limit) continue
    counted = { ...counted, current: counted.current + 1 }
    admittedMs.push(nowMs)
    while (admittedMs[oldest]! <= nowMs - windowMs) oldest++
    fullest = Math.max(fullest, admittedMs.length - oldest)
  }
  return { fullest, admitted: Math.round((10 * admittedMs.length) / windows) / 10 }
}

for (const [load, fullest, admitted] of [
  [1, 116, 93.4],
  [2, 105, 98.8],
] as const)
  test(`the page's figures: random traffic of ${load} times the limit fills a window up to ${fullest}`, () => {
    assert.equal(traffic(load), { fullest, admitted })
    assert.match(
      readText('docs/how-to/memcached.md'),
      `| ${load} times the limit | ${fullest} | ${admitted} |`,
    )
  })

test.run()
