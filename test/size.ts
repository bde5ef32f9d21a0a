import { test } from 'uvu'

const selected = process.env.MILLRACE_TESTS
/**
 * The size of the tests: `full` in `npm run test:full` and `npm run test:long`, else `quick`, also for a test file
 * run by itself.
 */
export const size = selected === 'full' || selected === 'long' ? 'full' : 'quick'

/** Whether `npm run test:long` runs the tests: all of what the full size has a share of. */
export const isLong = selected === 'long'

/** Selects a value by the size of the tests. */
export function sized<T>(sizes: { quick: T; full: T }): T {
  return sizes[size]
}

/** Registers a test that runs at full size only. */
export const atFullSize = (name: string, act: () => Promise<void> | void): void => {
  if (size === 'full') test(name, act)
}

/**
 * Every fifth entry of the list, or every `nth`, beginning with the first: the same for each commit. In
 * `npm run test:long`, all of it.
 */
export function shareOf<T>(all: readonly T[], nth = 5): readonly T[] {
  return isLong ? all : all.filter((_, i) => i % nth === 0)
}
