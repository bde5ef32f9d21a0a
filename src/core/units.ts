/**
 * Quantities in whole units, for a rule with the option `unit`. Every conversion rounds against the client.
 *
 * `Math.ceil` and `Math.floor` of the quotient are exact for quantities up to 2^53 - 1. Let k be a whole
 * number next to a quotient that is none. They differ by at least k / 2^53, because quantities differ by 1 or
 * more. That is more than half of the distance from k to the next double, so the quotient is not rounded to
 * k. A cost above 2^53 - 1 has more units than any limit, also when it is rounded.
 */

/** The units that a cost takes: rounded up. */
export const unitsOf = (cost: number, unit: number): number => Math.ceil(cost / unit)

/** The whole units in a quantity: rounded down. */
export const wholeUnitsIn = (quantity: number, unit: number): number => Math.floor(quantity / unit)

/** The units that a charge of `cost` has too many if its cost was `actualCost`; below 0: too few. */
export const unitsBetween = (cost: number, actualCost: number, unit: number): number =>
  unitsOf(cost, unit) - unitsOf(actualCost, unit)
