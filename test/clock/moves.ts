import fc from '../fast-check.js'
import type { ClockRule } from './key-judge.js'

export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** One move: the clock moves, then a key is decided on. */
export interface Move {
  /** Milliseconds and granules to add to the clock. */
  stepMs: number
  granules: number
  key: number
  cost: number
  /** The number of decisions in a row while the clock is frozen. */
  checks: number
  /** The limiter that decides, and its clock's distance from the other's: -1 to 1 granules. */
  second: boolean
  off: number
}

export const KEYS = 3

/**
 * Random moves with steps from `stepMs`. Between them the clock freezes, or advances by part of a granule or
 * a few.
 */
export function anyMoves(stepMs: fc.Arbitrary<number>): fc.Arbitrary<Move[]> {
  const frozen = fc.record({ stepMs: fc.constant(0), granules: fc.constant(0) })
  const gentle = fc.record({ stepMs: fc.constant(0), granules: fc.double({ min: 0, max: 3, noNaN: true }) })
  const sudden = fc.record({ stepMs, granules: fc.constant(0) })
  const how = fc.record({
    key: fc.nat(KEYS - 1),
    cost: fc.integer({ min: 1, max: 3 }),
    checks: fc.integer({ min: 1, max: 10 }),
    second: fc.boolean(),
    off: fc.double({ min: -1, max: 1, noNaN: true }),
  })
  const move = fc
    .tuple(
      fc.oneof(
        { weight: 3, arbitrary: frozen },
        { weight: 3, arbitrary: gentle },
        { weight: 2, arbitrary: sudden },
      ),
      how,
    )
    .map(([moved, rest]) => ({ ...moved, ...rest }))
  return fc.array(move, { minLength: 20, maxLength: 120, size: 'max' })
}

/**
 * A step of a second to an hour, in either direction; often a round number, at the edges of ticks and
 * granules.
 */
export const anyStepMs = fc.oneof(
  fc.constantFrom(1, 60, 600, 3_600).map((seconds) => seconds * 1_000),
  fc.constantFrom(1, 60, 600, 3_600).map((seconds) => seconds * -1_000),
  fc.integer({ min: 1_000, max: HOUR_MS }),
  fc.integer({ min: -HOUR_MS, max: -1_000 }),
)

export const anyRule: fc.Arbitrary<ClockRule> = fc.record({
  limit: fc.integer({ min: 3, max: 30 }),
  windowMs: fc.constantFrom(1_000, 60_000, 600_000, HOUR_MS, DAY_MS),
  parts: fc.constantFrom(1, 7, 10, 60),
})

/** The limiter's options for a rule, with room for all keys. */
export function optionsOf({ limit, windowMs, parts }: ClockRule) {
  return { limit, window: windowMs, granularity: windowMs / parts, maxKeys: 50 }
}
