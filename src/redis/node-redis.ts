import { MillraceError } from '../core/errors.js'
import type { Command, RedisConnection } from './connection.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from './reconnect.js'

/** The parts of a client of node-redis (the package `redis`) that the limiter uses. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly options?: { readonly disableOfflineQueue?: boolean; readonly socket?: object }
  sendCommand(command: readonly (string | Buffer)[], options: object): Promise<unknown>
  duplicate(options: object): NodeRedisClient
  connect(): Promise<unknown>
  destroy(): void
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

/** Numbers as numbers, whatever types the client's commands have. */
const PLAIN = { typeMapping: {} } as const

export function isNodeRedis(client: unknown): client is NodeRedisClient {
  if (typeof client !== 'object' || client === null) return false
  const { isOpen, sendCommand, duplicate, destroy } = client as Partial<NodeRedisClient>
  return (
    typeof isOpen === 'boolean' &&
    [sendCommand, duplicate, destroy].every((method) => typeof method === 'function')
  )
}

export function fromNodeRedis(client: NodeRedisClient, own: boolean): RedisConnection {
  if (typeof client.isReady !== 'boolean') {
    const expected = 'a single client of node-redis; for a Cluster, a client of ioredis'
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'client', client, expected)
  }
  if (!own && client.options?.disableOfflineQueue !== true) {
    throw new MillraceError(
      'ERR_MILLRACE_INVALID_OPTION',
      'client.options.disableOfflineQueue',
      client.options?.disableOfflineQueue,
      'true, with ownConnection: false',
    )
  }
  return own ? new OwnConnection(client) : new Connection(client)
}

class Connection implements RedisConnection {
  readonly isCluster = false
  protected client: NodeRedisClient
  protected listener: () => void = () => {}

  constructor(client: NodeRedisClient) {
    this.client = client
  }

  get isReady(): boolean {
    return this.client.isReady
  }

  send(command: Command): Promise<unknown> {
    return this.client.sendCommand(command, PLAIN)
  }

  primaries(): readonly ((command: Command) => Promise<unknown>)[] {
    return [(command) => this.send(command)]
  }

  onReady(listener: () => void): void {
    this.listener = listener
    this.client.on('ready', listener)
  }

  renew(): void {}

  async close(): Promise<void> {
    this.client.off('ready', this.listener)
  }
}

class OwnConnection extends Connection {
  readonly #like: NodeRedisClient
  /** Closes a socket that is about to connect, which `destroy` of the client leaves open. */
  #closing = new AbortController()
  /** Whether the socket has connected. The server may not have answered yet. */
  #isConnected = false

  constructor(like: NodeRedisClient) {
    super(like)
    this.#like = like
    this.#connect()
  }

  override renew(): void {
    if (!this.#isConnected) return // the client is about to connect
    this.#drop()
    this.#connect()
  }

  override async close(): Promise<void> {
    this.#drop()
  }

  #connect(): void {
    const client = this.#like.duplicate({
      disableOfflineQueue: true,
      socket: {
        ...this.#like.options?.socket,
        connectTimeout: CONNECT_TIMEOUT_MS,
        reconnectStrategy: reconnectMs,
        signal: this.#closing.signal,
      },
    })
    client.on('connect', () => {
      this.#isConnected = true
    })
    client.on('error', () => {
      // Errors of a connection that is lost are no news: the calls that it affects settle by themselves.
      if (client === this.client) this.#isConnected = false
    })
    client.on('ready', this.listener)
    this.client = client
    client.connect().catch(() => {}) // it rejects when it is closed before it has connected
  }

  #drop(): void {
    this.#isConnected = false
    this.client.off('ready', this.listener)
    this.client.destroy()
    this.#closing.abort()
    this.#closing = new AbortController()
  }
}
