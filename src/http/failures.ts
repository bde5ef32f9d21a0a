import { inspect } from 'node:util'
import type { Decision } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import { inertStack } from '../core/inert.js'
import type { RateLimitOptions } from './options.js'

/** Warnings of one process: at most one in this time. A failing store fails for every request. */
const WARN_EVERY_MS = 60_000

/** Tells the operator why no decision could be made, and what then happens to the request. */
export class Failures<Request> {
  readonly #onError: RateLimitOptions<Request, never>['onError']
  #warnedMs = Number.NEGATIVE_INFINITY

  constructor(onError: RateLimitOptions<Request, never>['onError']) {
    this.#onError = onError
  }

  /** Reports an error. Whether the request passes or fails. */
  report(error: unknown, request: Request): 'pass' | 'fail' {
    const onError = this.#onError
    if (typeof onError !== 'function') {
      this.#warn(error)
      return onError ?? 'fail'
    }
    try {
      return onError(error, request) === 'pass' ? 'pass' : 'fail'
    } catch (own) {
      this.#warn(own)
      return 'fail'
    }
  }

  #warn(error: unknown): void {
    const nowMs = performance.now()
    if (nowMs - this.#warnedMs < WARN_EVERY_MS) return
    this.#warnedMs = nowMs
    const text = inertStack(error instanceof Error ? (error.stack ?? error.message) : inspect(error))
    process.emitWarning(`rateLimit could not decide about a request: ${text}`, {
      type: 'MillraceWarning',
      code: 'MILLRACE_UNDECIDED',
    })
  }
}

/**
 * The error of a request that a limiter refused because its store did not answer.
 * @param decision the refusal. That of a limiter on a server has a `cause`
 */
export function outageError(decision: Decision & { readonly cause?: unknown }): MillraceError {
  if (decision.source === 'config') {
    const expected = 'a configuration store that has answered before the first request of a key'
    return new MillraceError(
      'ERR_MILLRACE_CONFIG_STORE',
      'limiter',
      'a key whose policy is not known',
      expected,
    )
  }
  const expected = 'a store that answers before the deadline'
  return new MillraceError('ERR_MILLRACE_OUTAGE', 'limiter', 'no reply in time', expected, {
    cause: decision.cause,
  })
}
