import { inspect } from 'node:util'
import { createLimiter, type ErrorCode, type LimiterOptions, MillraceError, manualClock } from 'millrace'
import * as assert from 'uvu/assert'

/** Not a multiple of any granule here, so that no test depends on a window that starts with the clock. */
export const START_MS = 1_000_123

/** A limiter of 5 a minute with granules of a second, on a manual clock. */
export function limiterWith(options: Partial<LimiterOptions> = {}) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({
    limit: 5,
    window: '1m',
    ...(options.algorithm === undefined && { granularity: '1s' as const }),
    maxKeys: 20,
    clock,
    ...options,
  })
  return { clock, limiter }
}

/** Asserts that `act` throws synchronously, with an error that names the option and what it expects. */
export function assertRaises(act: () => unknown, code: ErrorCode, option: string, hint = ''): MillraceError {
  try {
    act()
  } catch (error) {
    return assertIsError(error, code, option, hint)
  }
  assert.unreachable(`${code} for ${option} ${hint}: nothing was thrown`)
  throw new Error('not reached')
}

/** Like `assert.is`, but NaN equals NaN. */
export function assertSame(actual: unknown, expected: unknown): void {
  assert.ok(Object.is(actual, expected), `${inspect(actual)} is ${inspect(expected)}`)
}

/** Like {@link assertRaises}, for a rejected promise. `act` itself must not throw. */
export async function assertRejects(act: () => Promise<unknown>, code: ErrorCode, option: string) {
  let promise: Promise<unknown> | undefined
  assert.not.throws(() => (promise = act()), 'it should reject, not throw')
  const outcome = await settled(promise!)
  assert.is(outcome.status, 'rejected')
  return assertIsError((outcome as PromiseRejectedResult).reason, code, option)
}

export function assertIsError(error: unknown, code: ErrorCode, option: string, hint = ''): MillraceError {
  if (!(error instanceof MillraceError)) {
    assert.unreachable(`${code} for ${option} ${hint}: got ${error}`)
    throw error
  }
  assert.is(error.name, 'MillraceError', hint)
  assert.is(error.code, code, `${hint} ${error.message}`)
  assert.is(error.option, option, `${hint} ${error.message}`)
  assert.ok('value' in error, hint)
  assert.ok(error.expected.length > 0, hint)
  assert.ok(error.message.includes(option), `${error.message} names ${option}`)
  assert.ok(error.message.includes(error.expected), `${error.message} says what is expected`)
  return error
}

const MAX_WAIT_MS = Number(process.env.MILLRACE_TEST_WAIT_MS ?? 60_000)

/** Runs the event loop until `isSo` is true. Fails after a timeout. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  while (!isSo()) {
    if (performance.now() > deadline) assert.unreachable(`never came: ${what}`)
    await turn()
  }
}

/** One turn of the event loop. All promises that can settle by themselves have settled then. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** The outcome of a promise. Keeps the event loop alive until then. */
export async function settled<T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> {
  let outcome: PromiseSettledResult<T> | undefined
  void Promise.allSettled([promise]).then(([first]) => (outcome = first))
  await until(() => outcome !== undefined, 'a promise to settle')
  return outcome!
}

/** The value of a promise that resolves. */
export async function resolved<T>(promise: Promise<T>): Promise<T> {
  const outcome = await settled(promise)
  if (outcome.status === 'rejected') throw outcome.reason
  return outcome.value
}

/** Random whole numbers from 0 to below a number: the same for the same seed. */
export function random(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}
