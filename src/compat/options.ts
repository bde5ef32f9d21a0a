import { checkOptions } from '../api/checks.js'
import { invalid } from '../core/errors.js'
import { checkNearLimit, NEAR_LIMIT } from '../core/near-limit.js'
import { MOST_IN_LOG } from '../core/rule-algorithms.js'

/** The options that all drop-ins have. */
export interface CompatOptions {
  /**
   * How hits are counted.
   * - `'sliding-window'`: a key is admitted at most its limit in any window.
   * - `'fixed-window'`: as the package that is replaced counts, in windows that begin with the first hit of a
   *   key.
   * @default 'sliding-window'
   */
  algorithm?: 'sliding-window' | 'fixed-window'
  /**
   * How many keys can count at the same time, in each window: an integer of 1 or more. If it is too small, keys
   * displace each other: see `docs/how-to/sizing.md`.
   * @default 100_000
   */
  maxKeys?: number
  /**
   * How many different windows there may be: an integer of 1 or more. Each takes tables of its own.
   * @default 64
   */
  maxWindows?: number
  /**
   * The largest limit that a sliding window counts in a log, exactly to the millisecond: an integer from 0 to
   * 4,096. A key with a limit of up to 16 takes 125 bytes there; one with a larger limit 45 bytes, and 5 for each
   * unit of this number. Above it a key is counted in 60 buckets, which take 345 bytes; a hit then counts for up to
   * a sixtieth of the window longer.
   * @default 59
   */
  maxLogLimit?: number
  /**
   * From which share of its limit on a key is near it, for `nearLimit` in `stats()`: above 0, at most 1.
   * @default 0.8
   */
  nearLimit?: number
}

/** The options with their defaults. */
export type CheckedOptions = Readonly<Required<CompatOptions>>

/** The names of the options that all drop-ins have. */
const COMPAT_OPTIONS = ['algorithm', 'maxKeys', 'maxWindows', 'maxLogLimit', 'nearLimit'] as const

/** Checks the options that all drop-ins have. @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` */
export function checkCompatOptions(options: CompatOptions = {}): CheckedOptions {
  checkOptions(options, COMPAT_OPTIONS)
  const { algorithm = 'sliding-window', maxKeys = 100_000, maxWindows = 64, maxLogLimit = 59 } = options
  if (algorithm !== 'sliding-window' && algorithm !== 'fixed-window') {
    throw invalid('algorithm', algorithm, "'sliding-window' or 'fixed-window'")
  }
  checkInteger('maxKeys', maxKeys, 1)
  checkInteger('maxWindows', maxWindows, 1)
  checkInteger('maxLogLimit', maxLogLimit, 0, MOST_IN_LOG)
  const nearLimit = checkNearLimit(options.nearLimit) ?? NEAR_LIMIT
  return { algorithm, maxKeys, maxWindows, maxLogLimit, nearLimit }
}

function checkInteger(option: string, value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
  throw invalid(option, value, `an integer ${range}`)
}
