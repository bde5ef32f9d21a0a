/** The options of `limitedFetch` and `limitInterceptor`, and their checks. */

import type { Limiter } from '../api/limiter.js'
import { invalid } from '../core/errors.js'
import { LONGEST_TIMER_MS } from '../core/long-timer.js'
import { refuseUnknown } from '../core/option-names.js'
import { InlineLimiter } from '../limiters/inline-limiter.js'
import type { OwnLimiter } from './host.js'

/** An outgoing request, as the option `key` sees it. */
export interface OutgoingRequest {
  /** Where it goes: of a redirect, the new URL. */
  readonly url: URL
  /** The method, in capitals. */
  readonly method: string
  /** The headers that the caller has set. */
  readonly headers: Headers
}

/** The options of {@link limitedFetch} and `limitInterceptor`. */
export interface OutgoingOptions {
  /**
   * The limiter that counts the calls: of `createLimiter` or `openLimiter`, or attached, but not a pool. All that
   * use one limiter share its limit, its pauses and its queue: several functions of a thread; threads and
   * processes share limit and pauses.
   */
  limiter: Limiter
  /**
   * What is limited: one key for all calls, or a function that returns the key of a call, a string of 1 or more
   * characters.
   * @default the URL's host, with its port if it is not the protocol's own
   */
  key?: string | ((request: OutgoingRequest) => string)
  /**
   * What happens to a call without room: `'wait'` lets it wait its turn, `'refuse'` rejects it at once with
   * `MillraceLimited`. Refused calls are not sent, and with `'refuse'` no call is sent again.
   * @default 'wait'
   */
  mode?: 'wait' | 'refuse'
  /**
   * How many calls of a key may wait at the same time, in this thread: an integer of 0 or more, or `Infinity`.
   * Another one rejects with `ERR_MILLRACE_OVERLOADED`. A call that waits to be sent again is let in.
   * @default 1000
   */
  maxPending?: number
  /**
   * How long a call may wait before it is sent: milliseconds from 0 to 2,147,483,647, or `Infinity`. A call that
   * waits longer rejects with `MillraceLimited`; at once, if its host is paused for longer. Each time that a call
   * is sent counts for itself. An answer that tells a longer pause is returned, and not sent again.
   * @default 300_000
   */
  maxWaitMs?: number
  /**
   * The longest pause of a host that an answer can tell: milliseconds of 0 or more, or `Infinity`, which is a leap
   * year. A longer one is cut to it, so that one answer can't keep all callers from a host for a year.
   * @default 3_600_000
   */
  maxPauseMs?: number
  /**
   * How often a call is sent again after a 429 or a 503: an integer of 0 or more. See
   * `docs/how-to/outgoing-calls.md` for which calls are.
   * @default 2
   */
  retries?: number
  /**
   * Returns how much longer a call waits that has waited for a pause: milliseconds of 0 or more, for the length of
   * that pause. So calls don't go all at once when it ends.
   * @default a random time, up to a tenth of the pause and to one second
   */
  jitter?: (pauseMs: number) => number
  /**
   * Whether a call counts until one window after its answer, not after its sending. The server then never sees
   * more than the limit in any window of that length, however long calls are on their way. It needs rules of
   * `'sliding-window'` with the strict edge, which are the default.
   * @default true with these rules, else false
   */
  strict?: boolean
}

/** The options, checked. */
export interface CheckedOptions {
  readonly limiter: OwnLimiter
  readonly keyOf: (request: OutgoingRequest) => string
  readonly refuses: boolean
  readonly maxPending: number
  readonly maxWaitMs: number
  readonly maxPauseMs: number
  readonly retries: number
  readonly jitter: (pauseMs: number) => number
  readonly isStrict: boolean
}

const KNOWN = [
  'limiter',
  'key',
  'mode',
  'maxPending',
  'maxWaitMs',
  'maxPauseMs',
  'retries',
  'jitter',
  'strict',
]
const DEFAULT_MAX_PENDING = 1_000
/** As long as the `fetch` of Node.js waits for the headers of an answer. */
const DEFAULT_MAX_WAIT_MS = 300_000
const DEFAULT_MAX_PAUSE_MS = 3_600_000
const DEFAULT_RETRIES = 2
const MAX_JITTER_MS = 1_000

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkOutgoing(options: OutgoingOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, 'an object')
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  const { limiter, key, mode = 'wait', jitter = defaultJitter } = options
  const { maxPending = DEFAULT_MAX_PENDING, maxWaitMs = DEFAULT_MAX_WAIT_MS } = options
  const { maxPauseMs = DEFAULT_MAX_PAUSE_MS, retries = DEFAULT_RETRIES } = options
  if (!(limiter instanceof InlineLimiter)) {
    throw invalid('limiter', limiter, 'a limiter that decides on this thread: not of a pool, and no group')
  }
  if (mode !== 'wait' && mode !== 'refuse') throw invalid('mode', mode, "'wait' or 'refuse'")
  if (maxPending !== Number.POSITIVE_INFINITY) checkCount('maxPending', maxPending, ', or Infinity')
  checkCount('retries', retries, '')
  if (typeof jitter !== 'function') throw invalid('jitter', jitter, 'a function')
  return {
    limiter,
    keyOf: checkKey(key),
    refuses: mode === 'refuse',
    maxPending,
    maxWaitMs: checkWait(maxWaitMs),
    maxPauseMs: checkPause(maxPauseMs),
    retries,
    jitter: (pauseMs) => checkJitter(jitter(pauseMs)),
    isStrict: checkStrict(options.strict, limiter),
  }
}

/** A dot at the end says only that a name is whole: `example.com.` is `example.com`. Without another dot it may be two. */
const WHOLE_NAME = /^([^.:]+\.[^:]*[^.:])\.(:\d+)?$/

const hostOf = ({ url }: OutgoingRequest): string => url.host.replace(WHOLE_NAME, '$1$2')

function checkKey(key: unknown): CheckedOptions['keyOf'] {
  if (key === undefined) return hostOf
  if (typeof key === 'function') return key as CheckedOptions['keyOf']
  if (typeof key === 'string' && key !== '') return () => key
  throw invalid('key', key, 'a string of 1 or more characters, or a function')
}

function checkWait(maxWaitMs: unknown): number {
  if (maxWaitMs === Number.POSITIVE_INFINITY) return maxWaitMs
  if (typeof maxWaitMs === 'number' && maxWaitMs >= 0 && maxWaitMs <= LONGEST_TIMER_MS) return maxWaitMs
  throw invalid('maxWaitMs', maxWaitMs, `milliseconds from 0 to ${LONGEST_TIMER_MS}, or Infinity`)
}

function checkPause(maxPauseMs: unknown): number {
  if (typeof maxPauseMs === 'number' && maxPauseMs >= 0) return maxPauseMs
  throw invalid('maxPauseMs', maxPauseMs, 'milliseconds of 0 or more, or Infinity')
}

function checkStrict(strict: unknown, limiter: Limiter): boolean {
  const other = limiter.rules.find(
    ({ algorithm = 'sliding-window', edge }) => algorithm !== 'sliding-window' || edge !== 'strict',
  )
  if (strict === undefined) return other === undefined
  if (typeof strict !== 'boolean') throw invalid('strict', strict, 'a boolean')
  if (strict && other !== undefined) {
    throw invalid('strict', strict, `false: rule '${other.name}' is no sliding window with a strict edge`)
  }
  return strict
}

function checkCount(option: string, value: unknown, more: string): void {
  if (!Number.isInteger(value) || (value as number) < 0) {
    throw invalid(option, value, `an integer of 0 or more${more}`)
  }
}

function checkJitter(ms: unknown): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= LONGEST_TIMER_MS) return ms
  throw invalid('jitter', ms, `a function that returns milliseconds from 0 to ${LONGEST_TIMER_MS}`)
}

function defaultJitter(pauseMs: number): number {
  return Math.random() * Math.min(pauseMs / 10, MAX_JITTER_MS)
}
