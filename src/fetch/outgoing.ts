import { MillraceError } from '../core/errors.js'
import type { Signal } from '../core/on-abort.js'
import { Deadline } from './deadline.js'
import { type Host, hostOf, type Permit } from './host.js'
import { type CheckedOptions, checkOutgoing, type OutgoingOptions, type OutgoingRequest } from './options.js'
import { type HeaderOf, toldPauseMs } from './told-pause.js'

/** The pause after the first 429 that tells no time. Each further one of a call doubles it. */
const FIRST_BACKOFF_MS = 1_000
const MAX_BACKOFF_MS = 60_000
/** RFC 9110, section 9.2.2: these may be sent again although the first one may have been handled. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** The beginning of an answer. */
export interface Answer {
  readonly status: number
  readonly headerOf: HeaderOf
}

/** What decides whether a call can be sent again. */
export interface Sent {
  /** In capitals. */
  readonly method: string
  /** Whether the body is still there: none, or no stream. */
  readonly canResend: boolean
  /** 0 for the first time. */
  readonly attempt: number
}

/** The calls of one function that limits, in this thread. */
export interface OutgoingStats {
  /** Admitted calls: each time that one was sent, also again. */
  readonly admitted: number
  /** Of `admitted`: those that have waited for their turn. */
  readonly waited: number
  /** Calls that were rejected with `MillraceLimited`, or with `ERR_MILLRACE_OVERLOADED`. */
  readonly refused: number
  /** Of `refused`: those whose host was paused. */
  readonly blocked: number
  /** Calls that wait at present. */
  readonly waiting: number
  /** How often an answer has paused a host. */
  readonly pauses: number
}

/** What a limited function has beside the arguments of its own. */
export interface OutgoingHandles {
  /** Returns what became of the calls. */
  stats(): OutgoingStats
}

/** Admits outgoing calls, and hears what the answers tell. One for each function that limits. */
export class Outgoing {
  readonly #options: CheckedOptions
  readonly #counts = { admitted: 0, waited: 0, refused: 0, blocked: 0, waiting: 0, pauses: 0 }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
  constructor(options: OutgoingOptions) {
    this.#options = checkOutgoing(options)
  }

  keyOf(request: OutgoingRequest): string {
    return this.#options.keyOf(request)
  }

  /** Admits a call at once if there is room and no other call waits. */
  admitNow(key: string): Permit | undefined {
    const { limiter, isStrict, refuses } = this.#options
    const host = hostOf(limiter, key)
    try {
      const permit = refuses || host.waiting === 0 ? host.admitNow(isStrict) : undefined
      if (permit !== undefined) this.#counts.admitted++
      return permit
    } finally {
      host.release() // without a permit; and if the key is none
    }
  }

  /**
   * Admits a call when it is its turn. Rejects with the signal's reason, with `MillraceLimited` and with
   * `ERR_MILLRACE_OVERLOADED`: the call must not be sent then.
   * @param attempt 0 for the first time. A call that is sent again is not refused for `maxPending`
   */
  async admit(key: string, signal: Signal | undefined, attempt: number): Promise<Permit> {
    const { limiter, maxPending, maxWaitMs, refuses } = this.#options
    if (signal?.aborted) throw signal.reason
    const permit = this.admitNow(key)
    if (permit !== undefined) return permit
    const host = hostOf(limiter, key)
    try {
      if (refuses || host.pausedMs() > maxWaitMs) throw this.#refused(host.refusal(), host)
      if (attempt === 0 && host.waiting >= maxPending)
        throw this.#refused(overloaded(host.waiting, maxPending), host)
      const turn = await this.#wait(host, signal)
      this.#counts.admitted++
      this.#counts.waited++
      return turn
    } finally {
      host.release()
    }
  }

  /**
   * Ends a call by its answer, and pauses its host if the answer tells so.
   * @returns whether to send the call again
   */
  answered(key: string, permit: Permit, { status, headerOf }: Answer, sent: Sent): boolean {
    const { limiter, maxWaitMs, maxPauseMs, refuses, retries } = this.#options
    const told = toldPauseMs(headerOf)
    const wantedMs = told ?? (status === 429 ? backoffMs(sent.attempt) : undefined)
    const pauseMs = wantedMs === undefined ? undefined : Math.min(wantedMs, maxPauseMs)
    const host = hostOf(limiter, key)
    permit.end()
    if (pauseMs !== undefined) {
      host.pause(pauseMs)
      this.#counts.pauses++
    }
    host.release()
    if (refuses || sent.attempt >= retries || !sent.canResend) return false
    if (pauseMs === undefined || pauseMs > maxWaitMs) return false
    return status === 429 || (status === 503 && IDEMPOTENT.has(sent.method))
  }

  get handles(): OutgoingHandles {
    return { stats: () => ({ ...this.#counts }) }
  }

  #refused<E extends Error>(error: E, host: Host): E {
    this.#counts.refused++
    if (host.pausedMs() > 0) this.#counts.blocked++
    return error
  }

  async #wait(host: Host, signal: Signal | undefined): Promise<Permit> {
    const { isStrict, jitter, maxWaitMs } = this.#options
    const deadline = new Deadline(maxWaitMs, signal, () => this.#refused(host.refusal(), host))
    host.waiting++
    this.#counts.waiting++
    try {
      for (;;) {
        const { pauses } = host
        const pausedMs = host.pausedMs()
        const permit = await host.admit(deadline.signal, isStrict)
        const waitedMs = host.pauses === pauses ? pausedMs : host.lastPauseMs
        try {
          if (waitedMs > 0) await deadline.sleep(jitter(waitedMs))
          if (deadline.signal.aborted) throw deadline.signal.reason
          if (host.pausedMs() === 0) return permit
        } catch (error) {
          permit.cancel()
          throw error
        }
        permit.cancel() // a pause has begun since
      }
    } finally {
      host.waiting--
      this.#counts.waiting--
      deadline.end()
    }
  }
}

function backoffMs(attempt: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** attempt, MAX_BACKOFF_MS)
}

function overloaded(waiting: number, maxPending: number): MillraceError {
  const expected = `at most ${maxPending} calls of one key that wait`
  return new MillraceError('ERR_MILLRACE_OVERLOADED', 'maxPending', waiting + 1, expected)
}
