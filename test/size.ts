import { test } from 'uvu'

const selected = process.env.MILLRACE_TESTS
/**
 * The size of the tests: `full` in `npm run test:full` and `npm run test:long`, else `quick`, also for a test file
 * run by itself.
 */
export const size = selected === 'full' || selected === 'whole' ? 'full' : 'quick'

/** Whether tests that take turns in the full size all run, as in `npm run test:long`. */
const isWhole = selected === 'whole'

/** Selects a value by the size of the tests. */
export function sized<T>(sizes: { quick: T; full: T }): T {
  return sizes[size]
}

/** Registers a test that runs at full size only. */
export const atFullSize = (name: string, act: () => Promise<void> | void): void => {
  if (size === 'full') test(name, act)
}

const DAY_MS = 86_400_000
const DAYS = 5

/**
 * A fifth of the list, by the day, and at least one entry: all of it in five days. `npm run test:long` gets
 * the whole list.
 */
export function shareOfToday<T>(all: readonly T[]): readonly T[] {
  if (isWhole) return all
  const days = Math.min(DAYS, all.length) // no day is without an entry
  const today = Math.floor(Date.now() / DAY_MS) % days
  return all.filter((_, i) => i % days === today)
}
