import { MillraceError } from '../../core/errors.js'

/** Whether the request failed before a worker began it. */
export const isNotStarted = (error: unknown): error is MillraceError =>
  error instanceof MillraceError && error.code === 'ERR_MILLRACE_NO_THREADS'

/** For an aborted call. `mayBeCharged`: the request was in a ring already. */
export function abortedError(reason: unknown, mayBeCharged: boolean): MillraceError {
  const value = mayBeCharged ? 'a call aborted in flight' : 'a call aborted before it was sent'
  return new MillraceError('ERR_MILLRACE_ABORTED', 'call', value, 'a call whose signal is not aborted', {
    cause: reason,
    mayBeCharged,
  })
}

/** A worker died while it handled the request. */
export function workerLostError(cause: unknown): MillraceError {
  const value = 'the death of the worker that was deciding'
  return new MillraceError('ERR_MILLRACE_WORKER_LOST', 'engine', value, 'a reply', {
    cause,
    mayBeCharged: true,
  })
}

export function overloadedError(pending: number, maxPending: number): MillraceError {
  const expected = `fewer than pool.maxPending (${maxPending}) pending keys`
  return new MillraceError('ERR_MILLRACE_OVERLOADED', 'pool', pending, expected)
}

/**
 * No worker can be started, or workers die at start-up. The request was not charged. `mayBeCharged`: other
 * workers may have charged other keys of the batch.
 */
export function noThreadsError(cause: unknown, mayBeCharged = false): MillraceError {
  const value = 'no worker that starts'
  const expected = "worker threads (this process may lack the permission or the memory), or engine: 'inline'"
  return new MillraceError('ERR_MILLRACE_NO_THREADS', 'engine', value, expected, { cause, mayBeCharged })
}
