import { Redis, type RedisOptions } from 'ioredis'

/** A client whose password can change: all connections that are made later use the new one. */
class RedisClient extends Redis {
  readonly #copies = new Set<Redis>()
  /** Why it has no connection. */
  lastError: Error | undefined

  /** Limiters and stores make connections of their own. */
  override duplicate(override?: Partial<RedisOptions>): Redis {
    const copy = super.duplicate(override)
    this.#copies.add(copy)
    copy.on('end', () => this.#copies.delete(copy))
    return copy
  }

  /** Connects. @throws the error of the connection: `connect` says only that it is closed */
  async connected(): Promise<void> {
    try {
      await this.connect()
    } catch (error) {
      throw this.lastError ?? error
    }
  }

  setPassword(password: string | undefined): void {
    if (password === undefined) return
    for (const client of [this, ...this.#copies]) client.options.password = password
  }
}

/**
 * For how long a command of a new connection may take: `AUTH`, `INFO`. A connection takes longer than the deadline of a
 * decision, which limiters, stores and records keep themselves.
 */
const COMMAND_TIMEOUT_MS = 5_000

/** A client that is not connected yet, and sends no command twice. */
export function redisClient(url: string, password: string | undefined): RedisClient {
  const client = new RedisClient(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: (attempts) => Math.min(50 * attempts, 1_000),
  })
  client.setPassword(password)
  client.on('error', (error) => {
    client.lastError = error
  })
  return client
}
