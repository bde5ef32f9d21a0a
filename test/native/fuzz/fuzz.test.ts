// run: also-full
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../../size.js'
import { isLeftOut } from '../sides.js'
import { Fuzz, summaryOf } from './fuzz.js'

const ROUNDS = sized({ quick: 2, full: 10 })

const test = isLeftOut() ? always.skip : always

test('with random arguments, on memory that another thread writes to, the addon decides or throws', async () => {
  const fuzz = new Fuzz(7)
  for (let i = 0; i < ROUNDS; i++) {
    fuzz.play(2_000)
    await new Promise(setImmediate)
  }
  const found = await fuzz.end()
  assert.equal(found.complaints, [])
  const summary = summaryOf(found, 7, String)
  assert.ok(found.decided > 300 * ROUNDS && found.threw > 300 * ROUNDS, summary)
  // The seed alone decides these.
  assert.ok(found.single > 50 * ROUNDS, summary)
  assert.ok(found.fileCalls > 200 * ROUNDS && found.raced > 100 * ROUNDS, summary)
})

always.run()
