import { MillraceError } from '../core/errors.js'
import { afterMs } from '../core/long-timer.js'
import type { Awaitable } from './options.js'

/** A promise may be any object with `then`, such as a query or a reply of Fastify: it may have no `catch`. */
export const isPromise = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof value === 'object' && value !== null && typeof (value as PromiseLike<T>).then === 'function'

/**
 * What a function of the options has returned. Its promise is waited for until the deadline.
 * @param option names the function in the error
 * @returns rejects with `ERR_MILLRACE_FUNCTION_TIMEOUT` at the deadline
 */
export function within<T>(ms: number, value: Awaitable<T> | PromiseLike<T>, option: string): T | Promise<T> {
  if (!isPromise(value)) return value as T
  return new Promise<T>((resolve, reject) => {
    const stop = afterMs(ms, () => reject(timeoutError(ms, option)))
    value.then(
      (result) => {
        stop()
        resolve(result)
      },
      (error) => {
        stop()
        reject(error)
      },
    )
  })
}

function timeoutError(ms: number, option: string): MillraceError {
  const expected = `a promise that settles within keyTimeoutMs, ${ms} ms`
  return new MillraceError('ERR_MILLRACE_FUNCTION_TIMEOUT', option, 'a promise that is pending', expected)
}
