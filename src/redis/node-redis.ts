import { MillraceError } from '../core/errors.js'
import type { Command, Primary, RedisConnection } from './connection.js'
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

  nodeOf(): string {
    return ''
  }

  primaries(): readonly Primary[] {
    return [{ node: '', send: (command) => this.send(command) }]
  }

  refresh(): void {}

  onReady(listener: () => void): void {
    this.listener = listener
    this.client.on('ready', listener)
  }

  renew(): void {}

  async close(): Promise<void> {
    this.client.off('ready', this.listener)
  }
}

/**
 * What the socket of a client does. `connect()` and the event `reconnecting` begin an attempt to connect, `connect`
 * and `error` end it; after an error the client waits for its next attempt.
 */
type Stage = 'connecting' | 'connected' | 'waiting'

class OwnConnection extends Connection {
  readonly #like: NodeRedisClient
  #stage: Stage = 'connecting'

  constructor(like: NodeRedisClient) {
    super(like)
    this.#like = like
    this.#connect()
  }

  override renew(): void {
    if (this.#stage !== 'connected') return // the client is about to connect
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
      },
    })
    const enter = (stage: Stage) => () => {
      if (client === this.client) this.#stage = stage
    }
    client.on('connect', enter('connected'))
    client.on('reconnecting', enter('connecting'))
    // Errors of a connection that is lost are no news: the calls that it affects settle by themselves.
    client.on('error', enter('waiting'))
    client.on('ready', this.listener)
    this.client = client
    this.#stage = 'connecting'
    client.connect().catch(() => {}) // it rejects when it is closed before it has connected
  }

  #drop(): void {
    const { client } = this
    client.off('ready', this.listener)
    if (this.#stage !== 'connecting') {
      client.destroy()
      return
    }
    // While a client connects, `destroy` leaves its socket open.
    const destroy = () => {
      client.off('connect', destroy)
      client.off('error', destroy)
      client.destroy()
    }
    client.on('connect', destroy)
    client.on('error', destroy)
  }
}
