import { MillraceError } from '../core/errors.js'

/** What was asked had not been begun with. */
export const isNotStarted = (error: unknown): error is MillraceError =>
  error instanceof MillraceError && error.code === 'ERR_MILLRACE_NO_THREADS'

/** The signal of one call; `mayBeCharged` where it had been sent by then. */
export function aborted(reason: unknown, mayBeCharged: boolean): MillraceError {
  const value = mayBeCharged ? 'one that was aborted under way' : 'one that was aborted before it was sent'
  return new MillraceError('ERR_MILLRACE_ABORTED', 'call', value, 'a call whose signal is not aborted', {
    cause: reason,
    mayBeCharged,
  })
}

/** A thread of the pool has ended in the middle of it. */
export function workerLostError(cause: unknown): MillraceError {
  const value = 'the end of the thread that was deciding'
  return new MillraceError('ERR_MILLRACE_WORKER_LOST', 'engine', value, 'an answer', {
    cause,
    mayBeCharged: true,
  })
}

export function overloadedError(pending: number, maxPending: number): MillraceError {
  const expected = `fewer than pool.maxPending (${maxPending}) keys that wait for an answer`
  return new MillraceError('ERR_MILLRACE_OVERLOADED', 'pool', pending, expected)
}

/**
 * Threads can't be started, or end before they have done anything. What was asked has not been charged; of a batch, what other
 * threads were asked may have been.
 */
export function noThreadsError(cause: unknown, mayBeCharged = false): MillraceError {
  const value = 'none that starts'
  const expected = "worker threads (this process may lack the permission or the memory), or engine: 'inline'"
  return new MillraceError('ERR_MILLRACE_NO_THREADS', 'engine', value, expected, { cause, mayBeCharged })
}
