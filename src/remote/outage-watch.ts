import { publishOutage } from '../core/channels.js'
import { inert } from '../core/inert.js'
import { queueMicrotask } from '../core/real-timers.js'
import { messageOf } from './last-error.js'

/** What a limiter does while its server does not answer. */
export type OnOutage = 'closed' | 'open' | 'local'

/** The beginning or the end of an outage, for `onOutageChange`. */
export interface OutageChange {
  /** `'outage'`: a call had no answer, and is decided without the store. `'recovered'`: the store answers again. */
  readonly state: 'outage' | 'recovered'
  /** Why the first call of the outage had no answer: an error of the client, of the store, or of the deadline. */
  readonly cause: unknown
  /** When the outage began. */
  readonly since: Date
  /** The option `onOutage` of the limiter. */
  readonly policy: OnOutage
  /** Which store: `'redis'`, `'memcached'`, or the option `source` of a backend. */
  readonly store: string
  /** The option `prefix` of the limiter. */
  readonly prefix: string
}

const MEANS: Readonly<Record<OnOutage, string>> = {
  open: "onOutage: 'open' allows all requests until it does",
  closed: "onOutage: 'closed' refuses all requests until it does",
  local: "onOutage: 'local' decides by this process's share of the limits until it does",
}

/**
 * Knows when a limiter's store does not answer, and says so once when that begins and once when it ends. A store may be
 * several servers: an outage begins with the first of them that fails, and ends when none does.
 */
export class OutageWatch {
  readonly #limiter: Pick<OutageChange, 'policy' | 'store' | 'prefix'>
  readonly #onChange: ((change: OutageChange) => void) | undefined
  readonly #failing = new Set<object>()
  #outage: OutageChange | undefined

  constructor(
    policy: OnOutage,
    store: string,
    prefix: string,
    onChange: ((change: OutageChange) => void) | undefined,
  ) {
    this.#limiter = { policy, store, prefix }
    this.#onChange = onChange
  }

  /** A call to a server had no answer. */
  failed(server: object, cause: unknown): void {
    this.#failing.add(server)
    if (this.#outage !== undefined) return
    this.#outage = { state: 'outage', cause, since: new Date(), ...this.#limiter }
    const text = `does not answer (${inert(messageOf(cause))}): ${MEANS[this.#limiter.policy]}`
    process.emitWarning(`${this.#name} ${text}`, { type: 'MillraceWarning', code: 'MILLRACE_OUTAGE' })
    this.#publish(this.#outage)
  }

  /** A server has answered. */
  answered(server: object): void {
    if (this.#outage === undefined) return
    this.#failing.delete(server)
    if (this.#failing.size > 0) return
    const { since } = this.#outage
    const change: OutageChange = { ...this.#outage, state: 'recovered' }
    this.#outage = undefined
    const text = `answers again: the outage began at ${since.toISOString()}`
    process.emitWarning(`${this.#name} ${text}`, { type: 'MillraceWarning', code: 'MILLRACE_RECOVERED' })
    this.#publish(change)
  }

  /** A server is no longer asked. The outage is over with the next answer of another one, if no other one fails. */
  forget(server: object): void {
    this.#failing.delete(server)
  }

  get #name(): string {
    const { store, prefix } = this.#limiter
    return `the store '${store}' of the limiter '${inert(prefix)}'`
  }

  #publish(change: OutageChange): void {
    publishOutage(change)
    const onChange = this.#onChange
    // Not in the call that has found it: what the listener throws is an error of the process, and of no decision.
    if (onChange !== undefined) queueMicrotask(() => onChange(change))
  }
}
