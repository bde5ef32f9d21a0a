import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { isLeftOut } from '../sides.js'
import { Fuzz, summaryOf } from './fuzz.js'

const test = isLeftOut() ? always.skip : always

test('with random arguments, on memory that another thread writes to, the addon decides or throws', async () => {
  const fuzz = new Fuzz(7)
  for (let i = 0; i < 10; i++) {
    fuzz.play(2_000)
    await new Promise(setImmediate)
  }
  const found = await fuzz.end()
  assert.equal(found.complaints, [])
  const summary = summaryOf(found, 7, String)
  assert.ok(found.decided > 3_000 && found.threw > 3_000, summary)
  assert.ok(found.single > 1_000, summary)
  assert.ok(found.fileCalls > 1_000 && found.raced > 1_000, summary)
})

always.run()
