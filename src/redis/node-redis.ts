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
  return new Connection(own ? ownClient(client) : client, own)
}

function ownClient(client: NodeRedisClient): NodeRedisClient {
  const socket = {
    ...client.options?.socket,
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectStrategy: reconnectMs,
  }
  return client.duplicate({ disableOfflineQueue: true, socket })
}

class Connection implements RedisConnection {
  readonly isCluster = false
  readonly #client: NodeRedisClient
  readonly #isOwn: boolean
  /** Errors of a connection that is lost are no news: the calls that it affects settle by themselves. */
  readonly #ignore = (): void => {}
  #listener: (() => void) | undefined

  constructor(client: NodeRedisClient, isOwn: boolean) {
    this.#client = client
    this.#isOwn = isOwn
    if (!isOwn) return
    client.on('error', this.#ignore)
    client.connect().catch(this.#ignore) // it rejects when it is closed before it has connected
  }

  get isReady(): boolean {
    return this.#client.isReady
  }

  send(command: Command): Promise<unknown> {
    return this.#client.sendCommand(command, PLAIN)
  }

  nodeOf(): string {
    return ''
  }

  primaries(): readonly Primary[] {
    return [{ node: '', send: (command) => this.#client.sendCommand(command, PLAIN) }]
  }

  refresh(): void {}

  onReady(listener: () => void): void {
    this.#listener = listener
    this.#client.on('ready', listener)
  }

  async close(): Promise<void> {
    if (this.#listener !== undefined) this.#client.off('ready', this.#listener)
    if (this.#isOwn) this.#client.destroy()
  }
}
