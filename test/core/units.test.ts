// run: also-long
// Compares the arithmetic of units with that of BigInt, which is exact.

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { unitsBetween, unitsOf, wholeUnitsIn } from '#millrace/core/units.js'
import fc from '../fast-check.js'

const ceil = (cost: number, unit: number) => Number((BigInt(cost) + BigInt(unit) - 1n) / BigInt(unit))
const floor = (quantity: number, unit: number) => Number(BigInt(quantity) / BigInt(unit))

/** Whole numbers up to 2^53 - 1. Small ones are as frequent as large ones. */
const quantity = fc
  .record({ bits: fc.integer({ min: 0, max: 53 }), rest: fc.maxSafeNat() })
  .map(({ bits, rest }) => Number(BigInt(rest) >> BigInt(53 - bits)))

/** A unit, and a quantity: a multiple of the unit, next to a multiple, or any other. */
const pair = fc.record({ unit: quantity, count: quantity, off: fc.integer({ min: -2, max: 2 }) })

function assertExact(cost: number, unit: number): void {
  assert.is(unitsOf(cost, unit), ceil(cost, unit), `${cost} in units of ${unit}, rounded up`)
  assert.is(wholeUnitsIn(cost, unit), floor(cost, unit), `${cost} in units of ${unit}, rounded down`)
}

test('quantities are rounded exactly, also next to a multiple of the unit and at 2^53 - 1', () => {
  const most = Number.MAX_SAFE_INTEGER
  for (const unit of [1, 2, 3, 2_147_483_647, 2 ** 31, 4_294_967_297, 2 ** 52, most - 1, most]) {
    for (const cost of [0, 1, unit - 1, unit, most - 1, most]) assertExact(cost, unit)
  }
  let near = 0
  fc.assert(
    fc.property(pair, ({ unit, count, off }) => {
      if (unit === 0) return
      assertExact(count, unit)
      const multiple = Math.floor(Math.min(count, most) / unit) * unit
      const cost = Math.min(most, Math.max(0, multiple + off))
      assertExact(cost, unit)
      if (multiple > 2 ** 50) near++
    }),
    { numRuns: 20_000 },
  )
  assert.ok(near > 500, `${near} multiples were close to 2^53`)
})

test('a cost above 2^53 - 1 takes more units than any limit has', () => {
  const most = Number.MAX_SAFE_INTEGER
  for (const unit of [1, 7, 64_000, 2 ** 31 + 1, 2 ** 52 + 1, most]) {
    for (const cost of [2 ** 53, 2 ** 53 + 2, 2 ** 60, 1e300]) {
      assert.ok(unitsOf(cost, unit) > wholeUnitsIn(most, unit), `${cost} in units of ${unit}`)
    }
  }
})

test('a smaller actual cost keeps the units that it would have taken alone', () => {
  fc.assert(
    fc.property(quantity, quantity, quantity, (one, other, unit) => {
      if (unit === 0) return
      const [actual, cost] = one < other ? [one, other] : [other, one]
      assert.is(unitsBetween(cost, actual, unit), ceil(cost, unit) - ceil(actual, unit))
    }),
  )
})

test.run()
