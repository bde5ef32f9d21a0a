import type { Command, RedisConnection } from '../clients/connection.js'

/**
 * A connection for one transaction at a time. No other call may use it between WATCH and EXEC: EXEC would end the
 * watch of both.
 */
export class WatchSession {
  readonly #connection: RedisConnection
  /** The same connection. Its replies may wait for a replica. */
  readonly #writing: RedisConnection
  /** Counts connections. A watch ends with its connection, so EXEC must not go out by the next one. */
  #connected = 0
  /** The connection of the last WATCH. */
  #watched = 0
  #isWatching = false
  /** The first key of the transaction. */
  #first = ''
  /** Whether a transaction has begun and not ended. */
  isInUse = false
  readonly #waiting: (() => void)[] = []

  constructor(connection: RedisConnection, writing: RedisConnection) {
    this.#connection = connection
    this.#writing = writing
    connection.onReady(() => {
      this.#connected++
      this.#isWatching = false
      for (const resolve of this.#waiting.splice(0)) resolve()
    })
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  /** Resolves when there is a connection. */
  async untilReady(): Promise<void> {
    if (!this.isReady) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Watches these keys, and no others. */
  watch(names: readonly string[]): Promise<unknown> {
    this.#first = names[0]!
    this.#watched = this.#connected
    const commands: Command[] = [...(this.#isWatching ? [['UNWATCH']] : []), ['WATCH', ...names]]
    this.#isWatching = true
    return Promise.all(commands.map((command) => this.send(command)))
  }

  send(command: Command): Promise<unknown> {
    return this.#connection.send(command, this.#first)
  }

  /** Runs commands if no watched key has changed. Returns whether it has. */
  async execute(writes: readonly Command[]): Promise<boolean> {
    if (this.#connected !== this.#watched || !this.isReady)
      throw new Error('the connection was lost between WATCH and EXEC')
    const commands: Command[] = [['MULTI'], ...writes, ['EXEC']]
    this.#isWatching = false
    const replies = await Promise.all(commands.map((command) => this.#writing.send(command, this.#first)))
    const executed = replies.at(-1) as readonly unknown[] | null
    const failed = executed?.find((reply) => reply instanceof Error)
    if (failed !== undefined) throw new Error('a command of a transaction failed', { cause: failed })
    return executed !== null
  }

  /** Closes the connection, also in the middle of a transaction. */
  close(): Promise<void> {
    return this.#connection.close()
  }
}
