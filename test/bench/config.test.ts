// run: full, typescript
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Effort } from '../../bench/benchmark.js'
import { CONFIG_CASES } from '../../bench/cases/index.js'
import { exposeCollector } from './garbage.js'

exposeCollector()

const TINY: Effort = { quick: true, operations: 4_000, coldOperations: 1_000, policies: 5_000 }

for (const name of ['lmdb-look-up', 'lmdb-policies'] as const) {
  test(`${name}: each contender returns every figure, and each goal has a value`, async () => {
    const { contenders, units, goals, unavailable } = await CONFIG_CASES[name]()
    if (unavailable?.() !== undefined) return
    const round: Record<string, Record<string, number>> = {}
    for (const contender of contenders) {
      const figures = await contender.measure(TINY)
      for (const unit of Object.keys(units)) assert.ok(figures[unit]! >= 0, `${contender.name}: ${unit}`)
      round[contender.name] = figures
    }
    for (const { label, value } of goals) assert.ok(Number.isFinite(value(round)), label)
  })
}

test.run()
