import { MillraceError } from '../core/errors.js'
import { messageOf } from './last-error.js'

/** Redis has not answered in time. */
export class Outage {
  readonly cause: unknown
  /** Whether the request was sent: then Redis may have run it. */
  readonly mayBeCharged: boolean

  constructor(cause: unknown, mayBeCharged: boolean) {
    this.cause = cause
    this.mayBeCharged = mayBeCharged
  }

  /** The error of a method that has no answer of its own to an outage. */
  toError(): MillraceError {
    const { cause, mayBeCharged } = this
    return new MillraceError(
      'ERR_MILLRACE_OUTAGE',
      'client',
      'no reply in time',
      'a server that answers before the deadline',
      { cause, mayBeCharged },
    )
  }
}

/** The error of a server that does not accept the client's password. */
export function unwelcomeError(cause: unknown): MillraceError {
  const reply = messageOf(cause)
  const expected = `a user and a password that the server accepts (it says: ${reply})`
  const details = { cause, mayBeCharged: false }
  return new MillraceError('ERR_MILLRACE_OUTAGE', 'client', reply.split(' ', 1)[0], expected, details)
}
