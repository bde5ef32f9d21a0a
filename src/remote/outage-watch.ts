import { publishOutage } from '../core/channels.js'
import type { OnOutage, OutageChange } from '../core/events.js'
import { inert } from '../core/inert.js'
import { clearTimeout, queueMicrotask, setTimeout } from '../core/real-timers.js'
import { messageOf } from './last-error.js'

export type { OnOutage, OutageChange }

/** An outage is over when no call has failed for so long. */
const SHORTEST_STEADY_MS = 1_000
const LONGEST_STEADY_MS = 60_000

const MEANS: Readonly<Record<OnOutage, string>> = {
  open: "onOutage: 'open' allows all requests until it does",
  closed: "onOutage: 'closed' refuses all requests until it does",
  local: "onOutage: 'local' decides by this process's share of the limits until it does",
}

/**
 * Knows when a limiter's store does not answer, and says so once when that begins and once when it ends. A store may be
 * several servers: an outage begins with the first call that fails, and ends when each server that has failed has
 * answered since, and no call has failed for a while. That is a second. It doubles, up to a minute, with each outage that
 * begins within a minute of the end of the one before: so a store that fails one call in twenty is one outage for as long
 * as it does that, and no store brings more than a pair of messages a minute for long.
 */
export class OutageWatch {
  readonly #limiter: Pick<OutageChange, 'policy' | 'store' | 'prefix'>
  readonly #onChange: ((change: OutageChange) => void) | undefined
  readonly #nowMs: () => number
  /** By the names of servers. Other limiters of a configuration store use the same servers. */
  readonly #failing = new Set<string>()
  /** The server that has answered last in this outage, while it is asked. */
  #answering: string | undefined
  /** Of the objects by which servers are reached. */
  readonly #numbers = new WeakMap<object, number>()
  #numbered = 0
  #outage: OutageChange | undefined
  #steadyMs = SHORTEST_STEADY_MS
  #failedMs = Number.NEGATIVE_INFINITY
  #endedMs = Number.NEGATIVE_INFINITY
  /** Looks whether the outage is over. It keeps no process alive. */
  #later: NodeJS.Timeout | undefined

  constructor(
    policy: OnOutage,
    store: string,
    prefix: string,
    onChange: ((change: OutageChange) => void) | undefined,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#limiter = { policy, store, prefix }
    this.#onChange = onChange
    this.#nowMs = nowMs
  }

  /** The servers that are reached by a client, or by another object: the same ones for each limiter that has it. */
  of(client: unknown): ServersWatch {
    const by = Object(client) as object // what is no client is refused later
    const number = this.#numbers.get(by) ?? ++this.#numbered
    this.#numbers.set(by, number)
    return new ServersWatch(this, number)
  }

  /** The name of the store. */
  get store(): string {
    return this.#limiter.store
  }

  /** Whether an outage is going on. */
  get isOn(): boolean {
    return this.#outage !== undefined
  }

  /** A call to a server had no answer. */
  failed(server: string, cause: unknown): void {
    this.#failing.add(server)
    this.#failedMs = this.#nowMs()
    if (this.#outage !== undefined) return
    const isSoon = this.#failedMs - this.#endedMs < LONGEST_STEADY_MS
    this.#steadyMs = isSoon ? Math.min(2 * this.#steadyMs, LONGEST_STEADY_MS) : SHORTEST_STEADY_MS
    this.#answering = undefined
    this.#outage = { state: 'outage', cause, since: new Date(), ...this.#limiter }
    const text = `does not answer (${inert(messageOf(cause))}): ${MEANS[this.#limiter.policy]}`
    process.emitWarning(`${this.#name} ${text}`, { type: 'MillraceWarning', code: 'MILLRACE_OUTAGE' })
    this.#publish(this.#outage)
  }

  /** A server has answered. */
  answered(server: string): void {
    if (this.#outage === undefined) return
    this.#failing.delete(server)
    this.#answering = server
    this.#endIfSteady()
  }

  /**
   * A server is no longer asked, or not by one of its limiters. That is no recovery: the outage is over with an answer of
   * another one, if no other one fails.
   */
  forget(server: string): void {
    this.#failing.delete(server)
    if (server === this.#answering) {
      this.#answering = undefined
      this.#endTimer()
    } else if (this.#answering !== undefined) this.#endIfSteady()
  }

  #endIfSteady(): void {
    const outage = this.#outage
    if (outage === undefined || this.#failing.size > 0) return
    const nowMs = this.#nowMs()
    const leftMs = this.#failedMs + this.#steadyMs - nowMs
    if (leftMs > 0) this.#lookLater(leftMs)
    else this.#end(outage, nowMs)
  }

  #end(outage: OutageChange, nowMs: number): void {
    const { since } = outage
    const change: OutageChange = { ...outage, state: 'recovered' }
    this.#endTimer()
    this.#outage = undefined
    this.#endedMs = nowMs
    const text = `answers again: the outage began at ${since.toISOString()}`
    process.emitWarning(`${this.#name} ${text}`, { type: 'MillraceWarning', code: 'MILLRACE_RECOVERED' })
    this.#publish(change)
  }

  /** The last call may have been answered by now: no other one has to come. */
  #lookLater(afterMs: number): void {
    if (this.#later !== undefined) return
    this.#later = setTimeout(() => {
      this.#later = undefined
      this.#endIfSteady()
    }, Math.ceil(afterMs))
    this.#later.unref()
  }

  #endTimer(): void {
    clearTimeout(this.#later)
    this.#later = undefined
  }

  get #name(): string {
    const { store, prefix } = this.#limiter
    return `the store '${inert(store)}' of the limiter '${inert(prefix)}'`
  }

  #publish(change: OutageChange): void {
    publishOutage(change)
    const onChange = this.#onChange
    // Not in the call that has found it: what the listener throws is an error of the process, and of no decision.
    if (onChange !== undefined) queueMicrotask(() => onChange(change))
  }
}

/** The servers of one client. Most have one, whose name is `''`. */
export class ServersWatch {
  readonly #watch: OutageWatch
  readonly #number: number
  /** Whether nobody hears of them, because they are not used yet. */
  isMuted = false

  constructor(watch: OutageWatch, number: number) {
    this.#watch = watch
    this.#number = number
  }

  /** A call had no answer. */
  failed(node: string, cause: unknown): void {
    if (!this.isMuted) this.#watch.failed(this.#nameOf(node), cause)
  }

  answered(node: string): void {
    if (!this.isMuted) this.#watch.answered(this.#nameOf(node))
  }

  /** No call follows. */
  forget(node: string): void {
    this.#watch.forget(this.#nameOf(node))
  }

  #nameOf(node: string): string {
    return `${this.#number} ${node}`
  }
}
