// Equal answers and equal memory, by TypeScript and by the addon; `npm run parity` plays ten million operations.
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { runParity } from './parity.js'
import { isLeftOut } from './sides.js'

const test = isLeftOut() ? always.skip : always

test('random operations on two arenas, one by each side: equal answers, and equal memory word for word', () => {
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
