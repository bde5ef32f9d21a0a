// A process may have thousands of limiters, most of which decide rarely. Each takes little memory beside its table.
import { createLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { collectGarbage } from '../../bench/timing.js'
import { exposeCollector } from '../bench/garbage.js'

exposeCollector()

const LIMITERS = 100
/** They take 7,000. The arrays that a batch needs take 11,500, the counts of 1,024 slots of epochs 8,200. */
const MOST_BYTES = 10_000

test(`a limiter that has decided once takes at most ${MOST_BYTES} bytes beside its table`, () => {
  const made: Limiter[] = []
  const makeAndUse = (count: number) => {
    for (let i = 0; i < count; i++) {
      const limiter = createLimiter({ limit: 100, window: '1m' })
      assert.ok(limiter.check('key').allowed)
      made.push(limiter)
    }
  }
  const bytes = () => {
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  makeAndUse(LIMITERS) // V8 compiles
  const before = bytes()
  makeAndUse(LIMITERS)
  const each = (bytes() - before) / LIMITERS
  assert.ok(each < MOST_BYTES, `${each} bytes`)
})

test.run()
