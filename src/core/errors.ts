import { onOneLine } from './inert.js'

/**
 * The codes of all errors of Millrace. `docs/reference/errors.md` has the causes and remedies of each. A backend of your
 * own may raise a {@link MillraceError} with a code of its own: `string & {}` keeps the others for completion.
 */
export type ErrorCode =
  | 'ERR_MILLRACE_INVALID_OPTION'
  | 'ERR_MILLRACE_INVALID_RULE'
  | 'ERR_MILLRACE_INVALID_KEY'
  | 'ERR_MILLRACE_INVALID_COST'
  | 'ERR_MILLRACE_INVALID_DURATION'
  | 'ERR_MILLRACE_INVALID_CLOCK'
  | 'ERR_MILLRACE_CLOCKS_DIFFER'
  | 'ERR_MILLRACE_INVALID_SHARE'
  | 'ERR_MILLRACE_ARENA_TOO_LARGE'
  | 'ERR_MILLRACE_SHARED_FILE'
  | 'ERR_MILLRACE_SHARED_MISMATCH'
  | 'ERR_MILLRACE_SHARED_BUSY'
  | 'ERR_MILLRACE_NO_ADDON'
  | 'ERR_MILLRACE_MISSING_PEER'
  | 'ERR_MILLRACE_DAMAGED'
  | 'ERR_MILLRACE_FOREIGN_HANDLE'
  | 'ERR_MILLRACE_FOREIGN_DECISION'
  | 'ERR_MILLRACE_NEVER_ADMITTED'
  | 'ERR_MILLRACE_NOT_RESERVED'
  | 'ERR_MILLRACE_SETTLED'
  | 'ERR_MILLRACE_CLOSED'
  | 'ERR_MILLRACE_BUNDLED'
  | 'ERR_MILLRACE_ABORTED'
  | 'ERR_MILLRACE_OVERLOADED'
  | 'ERR_MILLRACE_WORKER_LOST'
  | 'ERR_MILLRACE_NO_THREADS'
  | 'ERR_MILLRACE_LIMITED'
  | 'ERR_MILLRACE_NO_ADDRESS'
  | 'ERR_MILLRACE_FUNCTION_TIMEOUT'
  | 'ERR_MILLRACE_OUTAGE'
  | 'ERR_MILLRACE_REDIS_VALUE'
  | 'ERR_MILLRACE_MEMCACHED_VALUE'
  | 'ERR_MILLRACE_STORED_VALUE'
  | 'ERR_MILLRACE_INVALID_POLICY'
  | 'ERR_MILLRACE_POLICY_TOO_LARGE'
  | 'ERR_MILLRACE_CONFIG_STORE'
  | 'ERR_MILLRACE_CONFIG_CONFLICT'
  | (string & {})

/**
 * The error of every method of Millrace. It names the value at fault and the expected one.
 *
 * @example
 * ```ts
 * import { MillraceError } from 'millrace'
 *
 * try {
 *   await limiter.check('')
 * } catch (error) {
 *   if (error instanceof MillraceError) console.log(error.code, error.option) // ERR_MILLRACE_INVALID_KEY key
 * }
 * ```
 */
export class MillraceError extends Error {
  /** `'MillraceError'`. */
  override readonly name = 'MillraceError'
  /** The kind of the error. Codes are stable; messages may change. */
  readonly code: ErrorCode
  /** The option, argument or field at fault, such as `limit` or `keys[3]`. */
  readonly option: string
  /** The value that was given. */
  readonly value: unknown
  /** A description of the expected value. */
  readonly expected: string
  /** Whether the call may have charged its key all the same. Only some errors have it. */
  declare readonly mayBeCharged?: boolean

  /**
   * @param code the kind of the error
   * @param option the option, argument or field at fault
   * @param value the value that was given
   * @param expected a description of the expected value, such as `'a number'`
   * @param options `cause`; and `mayBeCharged`, if the call may have charged its key all the same
   */
  constructor(
    code: ErrorCode,
    option: string,
    value: unknown,
    expected: string,
    options: { cause?: unknown; mayBeCharged?: boolean } = {},
  ) {
    super(onOneLine(`${option}: expected ${expected}, got ${formatValue(value)}`), options)
    if (options.mayBeCharged !== undefined) this.mayBeCharged = options.mayBeCharged
    this.code = code
    this.option = option
    this.value = value
    this.expected = expected
  }
}

const MAX_VALUE_CHARACTERS = 80

/** Formats any value on one short line. Never runs code of the value. */
function formatValue(value: unknown): string {
  if (typeof value === 'string') {
    if (value.length > MAX_VALUE_CHARACTERS) return `a string of ${value.length} characters`
    return JSON.stringify(value)
  }
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return isArray(value) ? 'an array' : 'an object'
  return String(value)
}

/** Whether an object is an array. `Array.isArray` throws for a proxy that has been revoked. */
function isArray(value: object): boolean {
  try {
    return Array.isArray(value)
  } catch {
    return false
  }
}

/** The error of an option, or of an argument, that has a wrong value. */
export const invalid = (option: string, value: unknown, expected: string): MillraceError =>
  new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
