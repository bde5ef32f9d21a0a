// run: also-full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { silence } from '../long-runs/progress.js'
import { size, sized } from '../size.js'
import { countOf, linesOf, runDeaths } from './deaths/all.js'

const DEATHS = sized({ quick: 4, full: 24 })

test(`${DEATHS} threads die while they decide: no hang, no window over the limit, no lost quota`, async () => {
  const found = await runDeaths(DEATHS, 1, silence)
  const lines = linesOf(found).join('\n')
  assert.equal(found.complaints, [], lines)
  assert.is(found.hangs, 0, lines)
  assert.is(found.over, 0, lines)
  assert.is(countOf(found), DEATHS)
  assert.ok(Object.values(found.deaths).every((count) => count > 0) || size === 'quick', lines)
  assert.ok(found.lostWays <= DEATHS, lines)
  assert.ok(found.claimed <= found.lostWays, lines)
  assert.ok(found.windows > 0, lines) // how many, the scheduler decides
  if (size === 'full') assert.ok(found.midOperation > 0, `no thread died during an operation: ${lines}`)
})

test.run()
