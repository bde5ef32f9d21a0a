import { emitWarning } from 'node:process'

const A_SECOND = 1_000

let hasWarned = false

/** Warns once in a thread about a window under a second that is written as a number: it may mean seconds. */
export function warnIfShort(windowMs: number): void {
  if (hasWarned || windowMs >= A_SECOND) return
  hasWarned = true
  const meant = `window: '${windowMs}s' if these are seconds, window: '${windowMs}ms' if they are milliseconds`
  emitWarning(`window: ${windowMs} is ${windowMs} milliseconds, as each number is. Write ${meant}`, {
    type: 'MillraceWarning',
    code: 'MILLRACE_SHORT_WINDOW',
  })
}
