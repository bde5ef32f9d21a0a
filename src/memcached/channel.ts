import { closedError } from '../api/checks.js'
import { MillraceError } from '../core/errors.js'
import { Breaker } from '../remote/breaker.js'
import { Deadlines, type Pending } from '../remote/deadlines.js'
import { Outage } from '../remote/outage.js'
import type { ReplyOptions } from './client.js'
import type { Connection } from './connection.js'

/** What a call does on the server: it sends commands, and returns its result. */
export interface Exchange {
  /** Whether the deadline has passed, so that nobody waits for the result. */
  readonly isSettled: boolean
  /** Sends a command once. Rejects if there is no connection, or if it is lost. */
  send(command: string, options?: ReplyOptions): Promise<unknown>
}

/** A call. It is settled once: by its result, by a failure, or by its deadline. */
class Call<T> implements Pending, Exchange {
  readonly #channel: Channel
  readonly #act: (exchange: Exchange) => Promise<T>
  readonly #isProbe: boolean
  readonly #resolve: (result: T) => void
  readonly #reject: (error: unknown) => void
  isSettled = false
  #isSent = false

  constructor(
    channel: Channel,
    act: (exchange: Exchange) => Promise<T>,
    isProbe: boolean,
    resolve: (result: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#channel = channel
    this.#act = act
    this.#isProbe = isProbe
    this.#resolve = resolve
    this.#reject = reject
  }

  send(command: string, options?: ReplyOptions): Promise<unknown> {
    const { connection } = this.#channel
    if (connection.isReady) this.#isSent = true
    return connection.send(command, options)
  }

  start(): void {
    this.#act(this).then(
      (result) => {
        if (!this.isSettled) this.#channel.noteReply()
        this.#settle(() => this.#resolve(result))
      },
      (error: unknown) => {
        if (!(error instanceof MillraceError)) return this.fail(error)
        if (!this.isSettled) this.#channel.noteReply()
        this.#settle(() => this.#reject(error))
      },
    )
  }

  fail(error: unknown): void {
    const cause = this.#channel.connection.failure ?? error
    this.#settle(() => {
      this.#channel.noteFailure(this.#isProbe, cause)
      this.#reject(new Outage(cause, this.#isSent))
    })
  }

  expire(): void {
    this.fail(new Error('no reply of Memcached before the deadline'))
  }

  #settle(act: () => void): void {
    if (this.isSettled) return
    this.isSettled = true
    act()
    this.#channel.noteSettled()
  }
}

/** Calls one server. Each call settles by the deadline, and no command of it is sent twice. */
export class Channel {
  readonly connection: Connection
  readonly #deadlines: Deadlines
  readonly #breaker = new Breaker()
  /** Calls before the first connection, which wait for it until their deadline. */
  #early: Call<unknown>[] | undefined = []
  /** Calls that are not settled. */
  #pending = 0
  #drained: () => void = () => {}
  readonly #isReady: Promise<void>
  #settleReady: (fault?: MillraceError) => void = () => {}
  /** Called when the server can be used again after an outage. */
  onRecovery: () => void = () => {}

  constructor(connection: Connection, deadlineMs: number) {
    this.connection = connection
    this.#deadlines = new Deadlines(deadlineMs)
    this.#isReady = new Promise((resolve, reject) => {
      this.#settleReady = (fault) => (fault === undefined ? resolve() : reject(fault))
    })
    this.#isReady.catch(() => {}) // those who wait for it get the error
    connection.onReady = () => this.#open()
  }

  /** Resolves when the server has answered for the first time. */
  ready(): Promise<void> {
    return this.#isReady
  }

  /**
   * Runs a call on the server. After its deadline `act` may go on, to take back what it has charged.
   * @throws Outage (rejects) if it is not done in time; MillraceError if `act` does
   */
  run<T>(act: (exchange: Exchange) => Promise<T>): Promise<T> {
    const wasOpen = this.#breaker.isOpen
    if (!this.#breaker.admits(performance.now()))
      return Promise.reject(new Outage(this.connection.failure ?? this.#breaker.cause, false))
    return new Promise((resolve, reject) => {
      const call = new Call(this, act, wasOpen, resolve, reject)
      this.#pending++
      if (this.#early !== undefined) this.#wait(this.#early, call as Call<unknown>)
      else if (this.connection.isReady) call.start()
      else return call.fail(new Error('no connection to the server'))
      this.#deadlines.add(call)
    })
  }

  noteReply(): void {
    const wasOpen = this.#breaker.isOpen
    this.#breaker.succeed()
    if (wasOpen) this.onRecovery()
  }

  noteFailure(isProbe: boolean, cause: unknown): void {
    this.#breaker.fail(performance.now(), isProbe, cause)
  }

  noteSettled(): void {
    if (--this.#pending === 0) this.#drained()
  }

  /** Waits for the pending calls, which the deadline bounds. No call follows. */
  async close(): Promise<void> {
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    this.#settleReady(closedError())
    this.#deadlines.expireAll()
    await this.connection.close()
  }

  /** Keeps a call until the first connection. Those whose deadline has passed go. */
  #wait(early: Call<unknown>[], call: Call<unknown>): void {
    if (early[0]?.isSettled) this.#early = early.filter(({ isSettled }) => !isSettled)
    this.#early!.push(call)
  }

  #open(): void {
    const early = this.#early ?? []
    this.#early = undefined
    this.#settleReady()
    this.noteReply()
    for (const call of early) if (!call.isSettled) call.start()
  }
}
