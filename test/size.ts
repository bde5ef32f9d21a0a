/** How much a test does: `quick` by `npm test`, and where a test file is run by itself; `full` by `npm run test:full`. */
export const size = process.env.MILLRACE_TESTS === 'full' ? 'full' : 'quick'

/** What the test has to do in this size. */
export function sized<T>(sizes: { quick: T; full: T }): T {
  return sizes[size]
}
