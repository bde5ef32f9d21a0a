import { createLimiter, manualClock } from 'millrace'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { decideOnBothSides } from './both-sides.js'
import { isLeftOut, type Side } from './sides.js'

const test = isLeftOut() ? always.skip : always
const SIDES: readonly Side[] = ['addon', 'typescript', 'addon', 'typescript']
const WINDOW_MS = 60_000
const GRANULE_MS = 1_000

for (const edge of ['strict', 'smooth'] as const) {
  for (const cost of [1, 3]) {
    test(`${edge}, cost ${cost}: two threads of each side on one arena admit to no key more than its limit in any window`, async () => {
      const limit = 40
      const keys = 100
      const phases = 300
      const clock = manualClock(1e9)
      const limiter = createLimiter({
        limit,
        window: WINDOW_MS,
        granularity: GRANULE_MS,
        edge,
        maxKeys: keys,
        clock,
      })
      const turnMs = WINDOW_MS + GRANULE_MS
      const admitted = await decideOnBothSides(limiter, SIDES, { keys, phases, cost, turnMs })
      const most = phases * Math.floor(limit / cost) * cost
      assert.equal(
        [...admitted].filter((units) => units > most),
        [],
      )
      const all = admitted.reduce((sum, units) => sum + units)
      assert.ok(
        all > 0.9 * keys * most,
        `${all} of ${keys * most}: the limits were used up in nearly every window`,
      )
    })
  }
}

always.run()
