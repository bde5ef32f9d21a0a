// TypeScript and the addon give equal answers and leave equal memory. `npm run parity` runs ten million
// operations.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { runParity } from './parity.js'
import { isLeftOut } from './sides.js'

const test = isLeftOut() ? always.skip : always

test('random operations by TypeScript and by the addon give equal answers and leave equal memory', () => {
  const found = runParity({ operations: 600_000, seed: 1 })
  assert.is(found.difference, undefined)
  assert.ok(found.compared >= 200)
  for (const [sums, operations] of Object.entries(found.by))
    assert.ok(operations >= 60_000, `${sums}: ${operations}`)
  const { admitted, refused, displaced, noRoom } = found
  assert.ok(Math.min(admitted, refused) > 50_000, `${admitted} admitted, ${refused} refused`)
  assert.ok(Math.min(displaced, noRoom) > 1_000, `${displaced} displaced, ${noRoom} without room`)
})

always.run()
