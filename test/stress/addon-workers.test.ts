// run: addon, also-full
import * as assert from 'uvu/assert'
import { silence } from '../long-runs/progress.js'
import { test } from '../native/addon-test.js'
import { sized } from '../size.js'
import { startAndEnd, summaryOf } from './addon-workers/run.js'

const STARTS = sized({ quick: 8, full: 24 })

test('threads that load the addon end in every way without crashing their process', async () => {
  const found = await startAndEnd(STARTS, process.execPath, silence)
  assert.equal(found.crashes, [])
  assert.is(summaryOf(found), `${STARTS} starts of threads with the addon in 2 processes: 0 crashes`)
})

test('a process that ends in another way is a crash', async () => {
  const { crashes } = await startAndEnd(4, 'false', silence)
  assert.is(crashes.length, 1)
})

test.run()
