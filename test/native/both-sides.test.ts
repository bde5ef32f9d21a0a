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
      const startMs = 1e9
      const clock = manualClock(startMs)
      const limiter = createLimiter({
        limit,
        window: WINDOW_MS,
        granularity: GRANULE_MS,
        edge,
        maxKeys: keys,
        clock,
      })
      const turnMs = WINDOW_MS + GRANULE_MS
      const admitted = await decideOnBothSides(limiter, SIDES, { keys, phases, cost, startMs, turnMs })
      assert.equal(
        admitted.filter((units) => units > limit),
        new Int32Array(0),
      )
      const usedUp = admitted.filter((units) => units === Math.floor(limit / cost) * cost).length
      assert.ok(usedUp > 0.2 * admitted.length, `${usedUp} of ${admitted.length} limits were used up`)
    })
  }
}

always.run()
