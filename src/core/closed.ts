import { MillraceError } from './errors.js'

/** Whether an error says that a limiter is closed. */
export function isClosed(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'ERR_MILLRACE_CLOSED'
}
