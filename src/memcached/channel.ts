import { closedError } from '../api/checks.js'
import type { MillraceError } from '../core/errors.js'
import { lateError } from '../remote/deadlines.js'
import { Guard, type OpenCall } from '../remote/guard.js'
import type { ServersWatch } from '../remote/outage-watch.js'
import type { ReplyOptions } from './client.js'
import type { Connection } from './connection.js'

/** Of the errors. */
const NAME = 'Memcached'

/** What a call does on the server: it sends commands, and returns its result. */
export class Exchange {
  readonly call: OpenCall
  readonly #connection: Connection

  constructor(call: OpenCall, connection: Connection) {
    this.call = call
    this.#connection = connection
  }

  /** Whether the deadline has passed, so that nobody waits for the result. */
  get isSettled(): boolean {
    return this.call.isSettled
  }

  /** Sends a command once that may charge. Rejects if there is no connection, or if it is lost. */
  send(command: string, options?: ReplyOptions): Promise<unknown> {
    if (this.#connection.isReady) this.call.isSent = true
    return this.#connection.send(command, options)
  }
}

/** Calls one server. Each call settles by the deadline, and no command of it is sent twice. */
export class Channel {
  readonly connection: Connection
  readonly #guard: Guard
  readonly #node: string
  readonly #outages: ServersWatch
  readonly #isReady: Promise<void>
  /** Whether there has been a connection: calls before it wait for it until their deadline. */
  #wasReady = false
  /** Whether `ready` has been called. */
  #isAwaited = false
  #settleReady: (fault?: MillraceError) => void = () => {}

  /** @param node the name of the server */
  constructor(connection: Connection, node: string, deadlineMs: number, outages: ServersWatch) {
    this.connection = connection
    this.#node = node
    this.#outages = outages
    const server = { name: NAME, whyNot: () => connection.failure }
    this.#guard = new Guard(server, deadlineMs, outages, node)
    this.#isReady = new Promise((resolve, reject) => {
      this.#settleReady = (fault) => (fault === undefined ? resolve() : reject(fault))
    })
    this.#isReady.catch(() => {}) // those who wait for it get the error
    connection.onReady = () => this.#open()
    connection.onFailure = () => this.#noteFailure(connection.failure ?? lateError(NAME))
  }

  /** Called when the server can be used again after an outage. */
  set onRecovery(listener: () => void) {
    this.#guard.onRecovery = listener
  }

  /** Resolves when the server has answered for the first time. */
  ready(): Promise<void> {
    this.#isAwaited = true
    this.#noteFailure(this.connection.failure)
    return this.#isReady
  }

  /**
   * Runs a call on the server. After its deadline `act` may go on, to take back what it has charged.
   * @throws Outage (rejects) if it is not done in time; MillraceError if `act` does
   */
  run<T>(act: (exchange: Exchange) => Promise<T>): Promise<T> {
    return this.#guard.run(async (call) => {
      if (!this.#wasReady) await this.#isReady
      if (call.isSettled) return call.expired
      if (!this.connection.isReady) throw new Error('no connection to the server')
      return act(new Exchange(call, this.connection))
    })
  }

  /** Waits for the pending calls, which the deadline bounds. No call follows. */
  async close(): Promise<void> {
    await this.#guard.close()
    this.#settleReady(closedError())
    await this.connection.close()
  }

  /** A server that has never answered, and for which `ready` waits: a call without an answer. */
  #noteFailure(cause: unknown): void {
    const isWaiting = this.#isAwaited && !this.#wasReady
    if (isWaiting && cause !== undefined) this.#outages.failed(this.#node, cause)
  }

  #open(): void {
    this.#wasReady = true
    this.#settleReady()
    this.#guard.noteReply()
  }
}
