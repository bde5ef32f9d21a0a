// TypeScript and the addon give equal answers and leave equal memory. `npm run dev -- parity` runs ten million
// operations.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { runParity } from './parity.js'
import { isLeftOut } from './sides.js'

/** The full tests run a million, as a part of their own. */
const OPERATIONS = 240_000

const test = isLeftOut() ? always.skip : always

test('random operations by TypeScript and by the addon give equal answers and leave equal memory', () => {
  const found = runParity({ operations: OPERATIONS, seed: 80 })
  assert.is(found.difference, undefined)
  assert.ok(found.compared >= OPERATIONS / 3_000)
  for (const [counting, operations] of Object.entries(found.by))
    assert.ok(operations >= OPERATIONS / 16, `${counting}: ${operations}`)
  const { admitted, refused, displaced, noRoom } = found
  assert.ok(Math.min(admitted, refused) > OPERATIONS / 12, `${admitted} admitted, ${refused} refused`)
  assert.ok(Math.min(displaced, noRoom) > OPERATIONS / 600, `${displaced} displaced, ${noRoom} without room`)
})

always.run()
