// Commands to Redis that settle by a deadline, by a client that somebody else has made.
import { errorMonitor } from 'node:events'
import { type BoundedCall, within } from '../../deadline.js'
import type { RedisConfigClient } from './client-parts.js'

export type Argument = string | Buffer | number

class LostError extends Error {
  constructor() {
    super('the connection to Redis was lost')
  }
}

/** What happens to the connections of a client. One a client, however many stores use it. */
class Connections {
  /** How many times a connection was lost: a command that was on its way may have run, or not. */
  losses = 0
  lastError: Error | undefined
  /** Calls that wait for a connection. */
  readonly #waiting = new Set<() => void>()
  /** Those of commands on their way. */
  readonly #sent = new Set<() => void>()

  constructor(client: RedisConfigClient) {
    const lose = () => void this.losses++
    const note = (error: unknown) => {
      if (error instanceof Error) this.lastError = error
    }
    for (const event of ['-node', 'node error']) client.on(event, lose)
    client.on('close', () => {
      lose()
      for (const give of [...this.#sent]) give()
    })
    for (const event of [errorMonitor, 'node error']) client.on(event, note)
    client.on('ready', () => {
      this.lastError = undefined
      this.#wake()
    })
    client.on('end', () => this.#wake())
  }

  /** Resolves when the client has become ready, when it has ended, or at the deadline of the call. */
  changed(call: BoundedCall): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        resolve()
      }
      this.#waiting.add(wake)
      call.onLate = wake
    })
  }

  /** The same reply, or a `LostError` if the connection is lost: not every client says so of its commands. */
  orLost(reply: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const give = () => reject(new LostError())
      this.#sent.add(give)
      reply.finally(() => this.#sent.delete(give)).then(resolve, reject)
    })
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}

const connectionsOf = new WeakMap<RedisConfigClient, Connections>()

export class RedisCommands {
  readonly client: RedisConfigClient
  readonly #deadlineMs: number
  readonly #connections: Connections

  constructor(client: RedisConfigClient, deadlineMs: number) {
    this.client = client
    this.#deadlineMs = deadlineMs
    this.#connections = connectionsOf.get(client) ?? new Connections(client)
    connectionsOf.set(client, this.#connections)
  }

  get losses(): number {
    return this.#connections.losses
  }

  /** Runs steps that have one deadline together. */
  within<T>(act: (call: BoundedCall) => Promise<T>): Promise<T> {
    return within(this.#deadlineMs, () => this.#lateError(), act)
  }

  /**
   * Sends a command once there is a connection, and again if that is lost: it must do no harm if it runs twice. Bulk
   * strings of the reply are Buffers. To be called in `within`.
   */
  async send(call: BoundedCall, command: string, ...args: Argument[]): Promise<unknown> {
    for (;;) {
      await this.ready(call)
      const { losses } = this
      try {
        return await this.#connections.orLost(this.client.callBuffer(command, ...args))
      } catch (error) {
        if (call.isOver || losses === this.losses || isReply(error)) throw error
      }
    }
  }

  /** Waits for the connection. So no command waits in the client, to be sent when its caller has long given up. */
  async ready(call: BoundedCall): Promise<void> {
    while (this.client.status !== 'ready') {
      if (this.client.status === 'end') throw new Error('the client of Redis is closed', this.#cause())
      if (this.client.status === 'wait') this.client.connect().catch(() => {}) // it tells by its events
      await this.#connections.changed(call)
      if (call.isOver) throw new Error('the deadline has passed')
    }
  }

  #lateError(): Error {
    const ms = this.#deadlineMs
    if (this.client.status === 'ready') return new Error(`no reply of Redis within ${ms} ms`)
    const why = this.#connections.lastError?.message ?? `the client is in the state ${this.client.status}`
    return new Error(`no connection to Redis within ${ms} ms: ${why}`, this.#cause())
  }

  #cause(): { cause?: unknown } {
    const { lastError } = this.#connections
    return lastError === undefined ? {} : { cause: lastError }
  }
}

/** Whether the server has refused the command. */
const isReply = (error: unknown): boolean => error instanceof Error && /^[A-Z]+ /.test(error.message)
