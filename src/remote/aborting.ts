import { MillraceError } from '../core/errors.js'
import { offAbort, onAbort, type Signal } from '../core/on-abort.js'

/** The same promise, but it rejects when the signal is aborted. What was sent may be charged all the same. */
export function aborting<T>(promise: Promise<T>, signal: Signal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const abort = () => reject(abortedError(signal, true))
    onAbort(signal, abort)
    promise.then(resolve, reject).finally(() => offAbort(signal, abort))
  })
}

/** @throws MillraceError `ERR_MILLRACE_ABORTED`, before anything is sent */
export function checkNotAborted(signal: Signal | undefined): void {
  if (signal?.aborted) throw abortedError(signal, false)
}

function abortedError({ reason }: Signal, mayBeCharged: boolean): MillraceError {
  const expected = 'a signal that is not aborted before the decision'
  const details = { cause: reason, mayBeCharged }
  return new MillraceError('ERR_MILLRACE_ABORTED', 'signal', 'an aborted signal', expected, details)
}
