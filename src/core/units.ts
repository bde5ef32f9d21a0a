/**
 * Quantities in whole units, for a rule with the option `unit`. Every conversion rounds against the client.
 *
 * `Math.ceil` and `Math.floor` of the quotient are exact for quantities up to 2^53 - 1. Let k be a whole
 * number next to a fractional quotient. The two differ by at least k / 2^53, because the quantity differs
 * from the multiple of the unit by 1 or more. That is more than half of the distance from k to the next
 * double, so the division does not round to k. A cost above 2^53 - 1 may be rounded. It still takes more
 * units than any limit has.
 */

/** The units that a cost takes: rounded up. */
export const unitsOf = (cost: number, unit: number): number => Math.ceil(cost / unit)

/** The whole units in a quantity: rounded down. */
export const wholeUnitsIn = (quantity: number, unit: number): number => Math.floor(quantity / unit)

/** The units to give back if `actualCost` replaces `cost`; below 0: to charge in addition. */
export const unitsBetween = (cost: number, actualCost: number, unit: number): number =>
  unitsOf(cost, unit) - unitsOf(actualCost, unit)
