import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HASH } from '#millrace/memory/layout.js'
import { PlanTable } from '#millrace/policies/plan-table.js'
import { random } from '../algorithms/random.js'

const randomFingerprint = (next: () => number) =>
  [Math.floor(next() * 2 ** 32) | 0 || 1, Math.floor(next() * 2 ** 32) & HASH] as const

test('a key has the plan that was set last, until it is removed or all are forgotten', () => {
  const table = new PlanTable<object>(100)
  assert.is(table.find(1, 128), -1)
  table.set(1, 128, 7, undefined)
  assert.equal([table.find(1, 128), table.find(1, 256), table.find(2, 128)], [7, -1, -1])
  table.set(1, 128, 8, undefined)
  assert.is(table.find(1, 128), 8)
  table.remove(1, 128)
  table.remove(3, 128)
  assert.is(table.find(1, 128), -1)
  table.set(1, 128, 9, undefined)
  table.clear()
  assert.is(table.find(1, 128), -1)
  table.set(1, 128, 0, undefined)
  assert.is(table.find(1, 128), 0)
})

test('a random history against a map: a plan is right or unknown, and most are known', () => {
  const next = random(1)
  const table = new PlanTable<object>(1_000)
  const plans = new Map<string, number>()
  const keys = Array.from({ length: 1_000 }, () => randomFingerprint(next))
  let [known, asked] = [0, 0]
  for (let i = 0; i < 100_000; i++) {
    const [lo, hi] = keys[Math.floor(next() * keys.length)]!
    const name = `${lo} ${hi}`
    const act = next()
    if (act < 0.3) {
      plans.set(name, i)
      table.set(lo, hi, i, undefined)
    } else if (act < 0.35) {
      plans.delete(name)
      table.remove(lo, hi)
    } else if (act > 0.9999) {
      plans.clear()
      table.clear()
    } else {
      const plan = table.find(lo, hi)
      assert.ok(plan === -1 || plan === plans.get(name))
      if (plans.has(name)) {
        asked++
        if (plan >= 0) known++
      }
    }
  }
  assert.ok(known > 0.9 * asked, `${known} of ${asked}`)
})

test('what a plan came from is known of an outdated entry, and of no other', () => {
  const table = new PlanTable<{ name: string }>(100)
  const source = { name: 'source' }
  table.set(1, 128, 7, source)
  table.set(2, 128, 8, undefined)
  table.clear()
  const found = [1, 2, 3].map((lo) => [table.find(lo, 128), table.sourceOf(lo, 128)])
  assert.equal(found, [
    [-1, source],
    [-1, undefined],
    [-1, undefined],
  ])
  assert.is(table.find(1, 256), -1)
  assert.is(table.sourceOf(1, 256), undefined, 'another key with half of the fingerprint')
  assert.is(table.find(1, 128), -1)
  table.set(1, 128, 9, source)
  assert.is(table.find(1, 128), 9)
  table.remove(1, 128)
  assert.is(table.find(1, 128), -1)
  assert.is(table.sourceOf(1, 128), undefined)
})

test('an outdated plan stays outdated, however often all are forgotten', () => {
  const table = new PlanTable<object>(100)
  table.set(1, 128, 7, {})
  for (let i = 0; i < 1_000; i++) {
    table.clear()
    assert.is(table.find(1, 128), -1)
    if (i % 3 > 0) continue
    table.set(2, 128, i, {})
    assert.is(table.find(2, 128), i)
  }
})

test('of as many keys as there is room for, few displace another', () => {
  const next = random(2)
  const table = new PlanTable<object>(10_000)
  const keys = Array.from({ length: 10_000 }, () => randomFingerprint(next))
  for (const [i, [lo, hi]] of keys.entries()) table.set(lo, hi, i, undefined)
  const lost = keys.filter(([lo, hi], i) => table.find(lo, hi) !== i).length
  assert.ok(lost < 100, `${lost}`)
})

test('an unlinked plan holds until all are forgotten; what others came from outlasts that, however often', () => {
  const table = new PlanTable<{ name: string }>(100)
  const source = { name: 'source' }
  table.set(1, 128, 7, source)
  table.set(2, 128, 8, source)
  table.unlink(1, 128)
  table.unlink(3, 128)
  assert.is(table.find(1, 128), 7)
  for (let i = 0; i < 300; i++) table.clear()
  assert.equal([table.find(1, 128), table.sourceOf(1, 128)], [-1, undefined])
  assert.equal([table.find(2, 128), table.sourceOf(2, 128)], [-1, source])
  table.close()
  assert.equal([table.find(2, 128), table.sourceOf(2, 128)], [-1, undefined])
})

test.run()
