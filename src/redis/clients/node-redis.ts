import { errorMonitor } from 'node:events'
import { MillraceError } from '../../core/errors.js'
import { lateError } from '../../remote/deadlines.js'
import { LastError } from '../../remote/last-error.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../../remote/reconnect.js'
import type { Command, Primary, RedisConnection } from './connection.js'

// Captured at load, so that fake timers of a test don't stop it.
const { clearTimeout, setTimeout } = globalThis

/** The parts of a client of node-redis (the package `redis`) that the limiter uses. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly options?: { readonly disableOfflineQueue?: boolean; readonly socket?: object }
  sendCommand(command: readonly (string | Buffer)[], options: object): Promise<unknown>
  duplicate(options: object): NodeRedisClient
  connect(): Promise<unknown>
  destroy(): void
  on(event: string | symbol, listener: (error: unknown) => void): unknown
  off(event: string | symbol, listener: (error: unknown) => void): unknown
}

/** Numbers as numbers, also where the client's commands have other types. */
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
  if (!own && client.options?.disableOfflineQueue !== true) {
    throw new MillraceError(
      'ERR_MILLRACE_INVALID_OPTION',
      'client.options.disableOfflineQueue',
      client.options?.disableOfflineQueue,
      'true, with ownConnection: false',
    )
  }
  return own ? new OwnConnection(() => connectedLike(client)) : new Connection(client)
}

class Connection implements RedisConnection {
  readonly isCluster = false
  protected client: NodeRedisClient
  protected listener: () => void = () => {}
  protected readonly lastError = new LastError()
  #onFailure = (): void => {}
  readonly #listeners: readonly [event: string | symbol, listener: (error: unknown) => void][] = [
    ['reconnecting', () => this.lastError.begin()],
    [errorMonitor, (error) => this.noteError(error)],
    [
      'ready',
      () => {
        this.lastError.clear()
        this.listener()
      },
    ],
  ]

  constructor(client: NodeRedisClient) {
    this.client = client
  }

  failureOf(): unknown {
    return this.isReady ? undefined : this.lastError.value
  }

  onFailure(listener: () => void): void {
    this.#onFailure = listener
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
    this.watch(this.client)
  }

  renew(): boolean {
    return false
  }

  async close(): Promise<void> {
    this.unwatch(this.client)
  }

  protected noteError(error: unknown): void {
    this.lastError.note(error)
    this.#onFailure()
  }

  protected watch(client: NodeRedisClient): void {
    for (const [event, listener] of this.#listeners) client.on(event, listener)
  }

  protected unwatch(client: NodeRedisClient): void {
    for (const [event, listener] of this.#listeners) client.off(event, listener)
  }
}

/**
 * What the socket of a client does. `connect()` and the event `reconnecting` begin an attempt to connect, `connect`
 * and `error` end it; after an error the client waits for its next attempt.
 */
type Stage = 'connecting' | 'connected' | 'waiting'

/** A client for the same server that sends no command twice and queues none, and begins to connect. */
export function connectedLike(like: NodeRedisClient, socket: object = {}): NodeRedisClient {
  const client = like.duplicate({
    disableOfflineQueue: true,
    socket: {
      ...like.options?.socket,
      connectTimeout: CONNECT_TIMEOUT_MS,
      reconnectStrategy: reconnectMs,
      ...socket,
    },
  })
  client.connect().catch(() => {}) // it rejects when it is closed before it has connected
  return client
}

/** A connection by clients of the limiter's own, one after the other. */
export class OwnConnection extends Connection {
  readonly #make: () => NodeRedisClient
  #stage: Stage = 'connecting'
  #isClosed = false
  /** The deadline of what the client asks a server before it takes commands, such as `HELLO`. */
  #greeting: NodeJS.Timeout | undefined

  /** @param make makes a client that begins to connect */
  constructor(make: () => NodeRedisClient) {
    const client = make()
    super(client)
    this.#make = make
    this.#use(client)
  }

  override onReady(listener: () => void): void {
    this.listener = listener
  }

  override renew(): boolean {
    if (this.#stage !== 'connected') return true // the client is about to connect
    this.#drop()
    this.#use(this.#make())
    return true
  }

  override async close(): Promise<void> {
    this.#isClosed = true
    this.#drop()
  }

  #use(client: NodeRedisClient): void {
    const enter = (stage: Stage) => () => {
      if (client !== this.client || this.#isClosed) return
      this.#stage = stage
      clearTimeout(this.#greeting)
      if (stage === 'connected') this.#greeting = setTimeout(() => this.#giveUp(), CONNECT_TIMEOUT_MS)
    }
    client.on('connect', enter('connected'))
    client.on('ready', () => clearTimeout(this.#greeting))
    client.on('reconnecting', enter('connecting'))
    client.on('error', enter('waiting'))
    this.watch(client)
    this.client = client
    this.#stage = 'connecting'
    this.lastError.begin()
  }

  #giveUp(): void {
    this.noteError(lateError())
    this.renew()
  }

  #drop(): void {
    const { client } = this
    clearTimeout(this.#greeting)
    this.unwatch(client)
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
