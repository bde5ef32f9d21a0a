import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { PlanTable } from '#millrace/memory/plan-table.js'
import { random } from '../algorithms/random.js'

test('a key has the plan that was set last, until it is removed or all are forgotten', () => {
  const table = new PlanTable(100)
  assert.is(table.find(1, 2), -1)
  table.set(1, 2, 7)
  assert.equal([table.find(1, 2), table.find(1, 3), table.find(2, 2)], [7, -1, -1])
  table.set(1, 2, 8)
  assert.is(table.find(1, 2), 8)
  table.remove(1, 2)
  table.remove(3, 4)
  assert.is(table.find(1, 2), -1)
  table.set(1, 2, 9)
  table.clear()
  assert.is(table.find(1, 2), -1)
  table.set(1, 2, 0)
  assert.is(table.find(1, 2), 0)
})

test('a random history against a map: a plan is right or unknown, and most are known', () => {
  const next = random(1)
  const table = new PlanTable(1_000)
  const plans = new Map<string, number>()
  const word = () => Math.floor(next() * 2 ** 32) | 0
  const keys = Array.from({ length: 1_000 }, () => [word(), word()] as const)
  let [known, asked] = [0, 0]
  for (let i = 0; i < 100_000; i++) {
    const [lo, hi] = keys[Math.floor(next() * keys.length)]!
    const name = `${lo} ${hi}`
    const act = next()
    if (act < 0.3) {
      plans.set(name, i)
      table.set(lo, hi, i)
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

test.run()
