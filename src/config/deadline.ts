import { invalid } from '../core/errors.js'
import { clearTimeout, setImmediate, setTimeout } from '../core/real-timers.js'

// The deadline of a call to a store on another machine.

/** What a running call may know of itself. */
export interface BoundedCall {
  /** Whether it has settled: what it still does has no effect on its caller. */
  readonly isOver: boolean
  /** Called at the deadline. */
  onLate: (() => void) | undefined
}

/**
 * Settles as `act` does, or rejects at the deadline. What `act` does later is ignored, also its error. It does not keep
 * the process alive: the connection does that, on which the call waits.
 * @param late makes the error of a call that takes longer
 */
export function within<T>(ms: number, late: () => Error, act: (call: BoundedCall) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = { isOver: false, onLate: undefined as (() => void) | undefined }
    const expire = () => {
      call.isOver = true
      reject(late())
      call.onLate?.()
    }
    // After a pause of the event loop, timers run before replies that have arrived are read.
    const timer = setTimeout(() => setImmediate(expire), ms).unref()
    const settle = () => {
      call.isOver = true
      clearTimeout(timer)
    }
    act(call).finally(settle).then(resolve, reject)
  })
}

/** Resolves after `ms`. Does not keep the process alive. */
export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => void setTimeout(resolve, ms).unref())

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkMs(option: string, value: unknown, [least, most]: readonly [number, number]): void {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw invalid(option, value, `milliseconds, ${least} to ${most}`)
}
