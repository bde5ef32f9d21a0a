import { Redis, type RedisOptions } from 'ioredis'
import { type SentinelAddress, sentinelIn } from './addresses.js'

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

const again = (attempts: number): number => Math.min(50 * attempts, 1_000)
const OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  commandTimeout: COMMAND_TIMEOUT_MS,
  retryStrategy: again,
} as const

/** A client of the primary that Sentinels name, now and after a failover. */
function bySentinel({ isSecure, ...address }: SentinelAddress): RedisClient {
  const tls = isSecure ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}
  return new RedisClient({
    ...OPTIONS,
    ...tls,
    ...address,
    sentinels: [...address.sentinels],
    sentinelRetryStrategy: again,
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    failoverDetector: true, // the connection to a primary that stands still would stay open for ever
    reconnectOnError: ({ message }) => message.startsWith('READONLY'), // it is no primary any more
  })
}

/** A client that is not connected yet, and sends no command twice. */
export function redisClient(url: string, password: string | undefined): RedisClient {
  const sentinel = sentinelIn(url)
  const client = sentinel === undefined ? new RedisClient(url, OPTIONS) : bySentinel(sentinel)
  client.setPassword(password)
  client.on('error', (error) => {
    client.lastError = error
  })
  return client
}
