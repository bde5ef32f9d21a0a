// run: also-full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { silence } from '../long-runs/progress.js'
import { size, sized } from '../size.js'
import { countOf, linesOf, runDeaths, sum } from './deaths/all.js'

const DEATHS = sized({ quick: 4, full: 12 })
/** One death in four to twelve falls into an operation on a judged key: in 10^9 runs of 240, one has none. */
const MOST_RUNS = sized({ quick: 1, full: 10 })

test(`${DEATHS} threads die while they decide: no hang, no window over the limit, no lost quota`, async () => {
  let found = await runDeaths(DEATHS, 1, silence)
  let runs = 1
  while (found.midOperation === 0 && found.hangs === 0 && runs < MOST_RUNS)
    found = sum(found, await runDeaths(DEATHS, ++runs, silence))
  const lines = linesOf(found).join('\n')
  assert.equal(found.complaints, [], lines)
  assert.is(found.hangs, 0, lines)
  assert.is(found.over, 0, lines)
  assert.is(countOf(found), runs * DEATHS)
  assert.ok(Object.values(found.deaths).every((count) => count > 0) || size === 'quick', lines)
  assert.ok(found.lostWays <= countOf(found), lines)
  assert.ok(found.claimed <= found.lostWays, lines)
  assert.ok(found.windows > 1_000, lines)
  if (size === 'full') assert.ok(found.midOperation > 0, `no thread died during an operation: ${lines}`)
})

test.run()
