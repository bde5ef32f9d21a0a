// run: first, full, also-long
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { halfOf, sized } from '../size.js'
import { type Findings, lineOf } from './changes/findings.js'
import { runPool } from './changes/pool.js'
import { runShape } from './changes/run.js'
import { SHAPES } from './changes/shapes.js'

const ROUNDS = sized({ quick: 1, full: 1, long: 3 })
const POOL_ROUNDS = sized({ quick: 10, full: 10, long: 20 })

function assertSound(name: string, found: Findings): void {
  const line = lineOf(name, found)
  assert.is(found.over, 0, line)
  assert.is(found.mixed, 0, line)
  assert.equal(found.complaints, [], line)
  assert.ok(found.changes > 15 && found.windows > 100 && found.full > 0, `too few events: ${line}`)
  assert.ok(found.carried > 0, `no window had units of an earlier one: ${line}`)
}

for (const [i, shape] of halfOf(SHAPES).entries()) {
  test(`threads decide while the window changes, ${shape.name}: none is over the limit`, async () => {
    const found = await runShape(shape, { threads: 3, rounds: ROUNDS, seed: i }, () => {})
    assertSound(shape.name, found)
    if (shape.adjusts) assert.ok(found.refunded > 0, lineOf(shape.name, found))
  })
}

test('a pool decides while the window changes under calls in flight: none is over the limit', async () => {
  const found = await runPool({ rounds: POOL_ROUNDS, seed: 1 }, () => {})
  assertSound('a pool', found)
  assert.ok(found.overlapped >= found.changes, 'calls were in flight at each change')
})

test.run()
