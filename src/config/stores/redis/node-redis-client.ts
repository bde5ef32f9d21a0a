// A client of node-redis, as the store uses one of ioredis.
import { errorMonitor } from 'node:events'
import { invalid } from '../../../core/errors.js'

import { CONNECT_TIMEOUT_MS, type RedisConfigClient, type Subscriber } from './client-parts.js'

type Listener = (...values: unknown[]) => void

/** The parts of a client of node-redis (the package `redis`) that the store uses. */
export interface NodeRedisConfigClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly options?: { readonly database?: number; readonly keyPrefix?: unknown; readonly socket?: object }
  sendCommand(command: readonly (string | Buffer)[], options: object): Promise<unknown>
  duplicate(options: object): unknown
  on(event: string | symbol, listener: Listener): unknown
}

/** A connection of the store's own. */
interface OwnClient extends NodeRedisConfigClient {
  connect(): Promise<unknown>
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>
  unref(): void
  destroy(): void
}

/** Bulk strings as Buffers: node-redis names types by the code of their first character, here `$`. */
const BUFFERS = { typeMapping: { 36: Buffer } } as const
/** What the store listens to, by the events of node-redis. */
const EVENTS: Readonly<Record<string, readonly string[]>> = {
  ready: ['ready'],
  close: ['reconnecting', 'end'],
  end: ['end'],
}

/** One of a client, so that its stores share their listeners. */
const adapters = new WeakMap<NodeRedisConfigClient, RedisConfigClient>()

/** Undefined for what is no client of node-redis. @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function fromNodeRedis(client: unknown): RedisConfigClient | undefined {
  const like = Object(client) as Partial<NodeRedisConfigClient & { nodeClient: unknown; acquire: unknown }>
  const { isOpen, sendCommand, duplicate } = like
  if (like.nodeClient !== undefined || like.acquire !== undefined)
    throw invalid('client', 'a Cluster or a Sentinel of node-redis', 'one of ioredis or iovalkey')
  if (typeof isOpen !== 'boolean' || typeof sendCommand !== 'function' || typeof duplicate !== 'function')
    return undefined
  const own = like as NodeRedisConfigClient
  const adapter = adapters.get(own) ?? new NodeRedisAdapter(own)
  adapters.set(own, adapter)
  return adapter
}

class NodeRedisAdapter implements RedisConfigClient {
  readonly options: object
  readonly #client: NodeRedisConfigClient
  #hasEnded = false

  constructor(client: NodeRedisConfigClient) {
    this.#client = client
    this.options = { db: client.options?.database, keyPrefix: client.options?.keyPrefix }
    client.on('connect', () => {
      this.#hasEnded = false
    })
    client.on('end', () => {
      this.#hasEnded = true
    })
  }

  get status(): string {
    if (this.#client.isReady) return 'ready'
    if (this.#client.isOpen) return 'connecting'
    return this.#hasEnded ? 'end' : 'not connected'
  }

  callBuffer(command: string, ...args: (string | Buffer | number)[]): Promise<unknown> {
    const texts = args.map((each) => (typeof each === 'number' ? String(each) : each))
    return this.#client.sendCommand([command, ...texts], BUFFERS)
  }

  on(event: string | symbol, listener: Listener): void {
    const events = event === errorMonitor ? [event] : (EVENTS[event as string] ?? [])
    for (const each of events) this.#client.on(each, listener)
  }

  duplicate(): Subscriber {
    const socket = {
      ...this.#client.options?.socket,
      connectTimeout: CONNECT_TIMEOUT_MS,
      reconnectStrategy: false,
    }
    return new NodeRedisSubscriber(this.#client.duplicate({ socket }) as OwnClient)
  }

  /** It is connected by its owner, who may do so but once. */
  async connect(): Promise<void> {}
}

class NodeRedisSubscriber implements Subscriber {
  readonly #client: OwnClient
  #receive: Listener = () => {}
  #isConnected = false

  constructor(client: OwnClient) {
    this.#client = client
    client.on('connect', () => {
      this.#isConnected = true
    })
  }

  get stream(): { unref(): void } {
    return this.#client
  }

  on(event: string, listener: Listener): void {
    if (event === 'message') this.#receive = listener
    else this.#client.on(event, listener)
    if (event === 'end') this.#client.on('error', listener) // it does not connect again
  }

  async connect(): Promise<void> {
    await this.#client.connect()
  }

  subscribe(channel: string): Promise<unknown> {
    return this.#client.subscribe(channel, (message, from) => this.#receive(from, message))
  }

  disconnect(): void {
    const destroy = () => {
      if (this.#client.isOpen) this.#client.destroy()
    }
    // While a client connects, `destroy` would leave its socket open.
    if (this.#isConnected) destroy()
    else this.#client.on('connect', destroy)
  }
}
