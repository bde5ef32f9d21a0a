/** The size of the tests: `full` in `npm run test:full`, else `quick`, also for a test file run by itself. */
export const size = process.env.MILLRACE_TESTS === 'full' ? 'full' : 'quick'

/** Selects a value by the size of the tests. */
export function sized<T>(sizes: { quick: T; full: T }): T {
  return sizes[size]
}
