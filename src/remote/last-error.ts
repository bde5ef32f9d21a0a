/** Why there is no connection: an error of the last attempt to connect, or of the connection that was lost. */
export class LastError {
  #error: unknown
  #isFirst = true

  get value(): unknown {
    return this.#error
  }

  /** An attempt to connect begins. The error of the one before stays until there is another one. */
  begin(): void {
    this.#isFirst = true
  }

  /** Of an attempt, the first error counts: after a wrong password, a client is told that it needs one. */
  note(error: unknown): void {
    if (!this.#isFirst) return
    this.#isFirst = false
    // A Cluster of ioredis says that all nodes have failed, and has the reason of the last one.
    this.#error = (error as { lastNodeError?: unknown } | undefined)?.lastNodeError ?? error
  }

  /** There is a connection. */
  clear(): void {
    this.#error = undefined
    this.#isFirst = true
  }
}

/** What an error says. Of a host with several addresses, Node.js gives an error for each in one without a message. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return [...new Set(error.errors.map(messageOf))].join('; ')
  return error instanceof Error ? error.message : String(error)
}

/** Whether it is the answer of a server, and no error of a connection. */
export const isReply = (error: unknown): boolean => /^[A-Z]+ /.test(messageOf(error))
