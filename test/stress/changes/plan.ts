import { MOST_RECORDS } from '#millrace/memory/layout.js'
import { random } from '../../algorithms/random.js'
import type { Shape } from './shapes.js'

/** A window of a rule, and the limit that it has with it. No two of a plan have the same length or limit. */
export interface Planned {
  readonly windowMs: number
  readonly buckets: number
  readonly limit: number
}

const LEAST_LIMIT = 20
/** Odd, so that 64 steps reach all numbers below 64. */
const LIMIT_STEP = 27
const FACTORS = [0.2, 0.4, 1, 1, 1.7, 3]
/** Every sixth window and the one after it are so much longer that no unit leaves them during the run. */
const LONG_EVERY = 6
const LONG = 100

export const nameOf = (rule: number): string => `rule ${rule}`

/**
 * The windows of each rule, the one of the limiter's options first. All threads compute the same. Each window
 * has a limit of its own, by which a decision shows its window. The second of two long windows has a high one,
 * so that keys that are at their limit are admitted again.
 */
export function plansFor(
  { baseMs, buckets, windows, laterBuckets, rules }: Shape,
  seed: number,
): Planned[][] {
  const next = random(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!
  const offset = Math.floor(next() * MOST_RECORDS)
  return Array.from({ length: rules }, () =>
    Array.from({ length: windows }, (_, i) => {
      const factor = i % LONG_EVERY < 2 ? LONG : pick(FACTORS)
      const more = (offset + LIMIT_STEP * i) % MOST_RECORDS
      const limit = LEAST_LIMIT + more + (i % LONG_EVERY === 1 ? MOST_RECORDS : 0)
      const own = i === 0 ? buckets : pick(laterBuckets)
      return { windowMs: baseMs * factor * (1 + i / 1_000), buckets: own, limit }
    }),
  )
}
