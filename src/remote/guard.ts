import { MillraceError } from '../core/errors.js'
import { Breaker } from './breaker.js'
import { Deadlines, lateError, type Pending } from './deadlines.js'
import { Outage } from './outage.js'
import type { ServersWatch } from './outage-watch.js'

/** A call that is under way. */
export interface OpenCall {
  /** Whether it has been settled, by its deadline or otherwise: nobody waits for its result. */
  readonly isSettled: boolean
  /** Rejects at the deadline. */
  readonly expired: Promise<never>
  /** Set while something is sent that may charge: if the call fails then, it may have charged. */
  isSent: boolean
}

/** What a guard knows of its server. */
interface Server {
  /** Of the errors. */
  readonly name: string
  /** Why there is no connection; undefined: there is one, or nobody has said why not. */
  whyNot?(): unknown
  /** Whether an error says that the server has charged nothing, and why: it has answered. */
  isAnswer?(error: unknown): boolean
}

/** A call. It is settled once: by its result, by a failure, or by its deadline. */
class Call<T> implements Pending, OpenCall {
  readonly expired: Promise<never>
  readonly #onEnd: (call: Call<T>, error?: unknown) => void
  readonly #server: Server
  readonly isProbe: boolean
  readonly #resolve: (result: T) => void
  readonly #reject: (error: unknown) => void
  #expire: (error: Error) => void = () => {}
  isSettled = false
  isSent = false

  constructor(
    server: Server,
    isProbe: boolean,
    onEnd: (call: Call<T>, error?: unknown) => void,
    resolve: (result: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#server = server
    this.isProbe = isProbe
    this.#onEnd = onEnd
    this.#resolve = resolve
    this.#reject = reject
    this.expired = new Promise((_, expire) => {
      this.#expire = expire
    })
    this.expired.catch(() => {}) // nobody may race with it
  }

  succeed(result: T): void {
    if (this.isSettled) return
    this.isSettled = true
    this.#onEnd(this)
    this.#resolve(result)
  }

  fail(error: unknown): void {
    if (this.isSettled) return
    this.isSettled = true
    const isAnswer = this.#server.isAnswer?.(error) ?? false
    const isOwn = error instanceof MillraceError || error instanceof Outage
    const cause = isAnswer || isOwn ? error : (this.#server.whyNot?.() ?? error)
    this.#onEnd(this, cause)
    this.#reject(isOwn ? error : new Outage(cause, this.isSent && !isAnswer))
  }

  expire(): void {
    const late = lateError(this.#server.name)
    this.fail(late)
    this.#expire(late)
  }
}

/** Settles each call by its deadline. After calls that have failed, it lets through one now and then. */
export class Guard {
  readonly #deadlines: Deadlines
  readonly #server: Server
  readonly #breaker: Breaker
  #pending = 0
  #drained: () => void = () => {}
  /** Called when the server can be used again after an outage. */
  onRecovery: () => void = () => {}

  constructor(server: Server, deadlineMs: number, outages: ServersWatch, node?: string) {
    this.#server = server
    this.#breaker = new Breaker(outages, node)
    this.#deadlines = new Deadlines(deadlineMs)
  }

  /** Whether calls are spared the server, because it has not answered. */
  get isDown(): boolean {
    return this.#breaker.isOpen
  }

  /**
   * Runs a call. After its deadline `act` may go on.
   * @throws Outage (rejects) if it is not done in time; MillraceError if `act` does
   */
  run<T>(act: (call: OpenCall) => Promise<T>): Promise<T> {
    const wasOpen = this.#breaker.isOpen
    if (!this.#breaker.admits(performance.now()))
      return Promise.reject(new Outage(this.#server.whyNot?.() ?? this.#breaker.cause, false))
    return new Promise((resolve, reject) => {
      const onEnd = (ended: Call<T>, error: unknown) => this.#noteEnd(ended.isProbe, error)
      const call = new Call<T>(this.#server, wasOpen, onEnd, resolve, reject)
      this.#pending++
      this.#deadlines.add(call)
      act(call).then(
        (result) => call.succeed(result),
        (error: unknown) => call.fail(error),
      )
    })
  }

  /** The server has answered. */
  noteReply(): void {
    const wasOpen = this.#breaker.isOpen
    this.#breaker.succeed()
    if (wasOpen) this.onRecovery()
  }

  /** Waits for the pending calls, which the deadline bounds. No call follows. */
  async close(): Promise<void> {
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    this.#deadlines.expireAll()
    this.#breaker.close()
  }

  #noteEnd(isProbe: boolean, error: unknown): void {
    // A MillraceError is about a value. An outage of a call's own, such as that of too many tries, is none of the server.
    if (error === undefined || error instanceof MillraceError || error instanceof Outage) this.noteReply()
    else this.#breaker.fail(performance.now(), isProbe, error)
    if (--this.#pending === 0) this.#drained()
  }
}
