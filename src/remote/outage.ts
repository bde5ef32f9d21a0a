import { MillraceError } from '../core/errors.js'
import { answerOf, codeOf, tlsCodeOf } from './answers.js'
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
    const value = codeOf(cause) ?? tlsCodeOf(cause) ?? 'no reply in time'
    return new MillraceError('ERR_MILLRACE_OUTAGE', 'client', value, expectedFor(cause), {
      cause,
      mayBeCharged,
    })
  }
}

/** The error of a server that this client can't use until somebody mends one of the two. */
export const unwelcomeError = (cause: unknown): MillraceError => new Outage(cause, false).toError()

function expectedFor(cause: unknown): string {
  const tls = tlsCodeOf(cause) && 'a server and a client with certificates that each other trusts'
  const expected = tls ?? answerOf(cause)?.expected
  if (expected === undefined) return 'a server that answers before the deadline'
  return `${expected} (the reason: ${messageOf(cause)})`
}
