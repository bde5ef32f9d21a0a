import { test } from 'uvu'

const selected = process.env.MILLRACE_TESTS
/**
 * The size of the tests: `full` in `npm run test:full` and `npm run test:long`, else `quick`, also for a test file
 * run by itself.
 */
export const size = selected === 'full' || selected === 'long' ? 'full' : 'quick'

/** Whether `npm run test:long` runs the tests: all of what the full size has a share of. */
export const isLong = selected === 'long'

/** Whether the runner runs the test file with the addon and without it. */
const isOnBothSides = process.env.MILLRACE_BOTH_SIDES === '1'
/** Whether this is the run without the addon: the other one tests what the addon does not decide. */
export const isSecondSide = isOnBothSides && process.env.MILLRACE_NATIVE === '0'

/** Selects a value by the size of the tests; the long tests have that of the full ones if they have none of their own. */
export function sized<T>({ quick, full, long = full }: { quick: T; full: T; long?: T }): T {
  return isLong ? long : { quick, full }[size]
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

/** All entries. Of a full test that runs with the addon and without it, every second one in each. */
export function halfOf<T>(all: readonly T[]): readonly T[] {
  if (isLong || !isOnBothSides) return all
  return all.filter((_, i) => i % 2 === (isSecondSide ? 1 : 0))
}
