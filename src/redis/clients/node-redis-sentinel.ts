import { invalid } from '../../core/errors.js'
import { Deadlines } from '../../remote/deadlines.js'
import { NotSent } from '../../remote/not-sent.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../../remote/reconnect.js'
import type { Command, Primary, RedisConnection } from './connection.js'
import { connectedLike, type NodeRedisClient, OwnConnection } from './node-redis.js'

// Captured at load, so that fake timers of a test don't stop it.
const { clearTimeout, setTimeout } = globalThis

/** The parts of a Sentinel client of node-redis 6 that the limiter uses. */
export interface NodeRedisSentinel {
  readonly isOpen: boolean
  acquire(): Promise<unknown>
  duplicate(overrides?: never): unknown
}

interface ClientOptions {
  readonly socket?: { readonly host?: string; readonly port?: number }
}

interface Options {
  readonly sentinelRootNodes: readonly object[]
  readonly nodeClientOptions?: ClientOptions
  readonly sentinelClientOptions?: ClientOptions
}

/** The same, with what is no part of its types. */
interface Resolver {
  duplicate(overrides: object): Resolver
  connect(): Promise<unknown>
  destroy(): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): unknown
  _execute<T>(isReadonly: false, act: (client: NodeRedisClient) => Promise<T>): Promise<T>
}

export const isSentinel = (client: unknown): client is NodeRedisSentinel =>
  typeof (Object(client) as Partial<NodeRedisSentinel>).acquire === 'function'

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function fromSentinel(client: NodeRedisSentinel, own: boolean): RedisConnection {
  if (!own) throw invalid('ownConnection', false, 'true for a Sentinel of node-redis')
  const options = optionsOf(client)
  if (!Array.isArray(options?.sentinelRootNodes))
    throw invalid('client', 'a Sentinel of an older node-redis', 'one of node-redis 6, or of ioredis')
  return new SentinelConnection(client as unknown as Resolver, options)
}

/** The options that `duplicate` gives to another client: a Sentinel shows them in no other way. */
function optionsOf(client: NodeRedisSentinel): Options | undefined {
  if (typeof client.duplicate !== 'function') return undefined
  let options: Options | undefined
  class Taker {
    constructor(given: Options) {
      options = given
    }
  }
  const like: object = Object.create(client, { constructor: { value: Taker } })
  client.duplicate.call(Object.create(like) as NodeRedisSentinel)
  return options
}

/**
 * The connection to the primary that a Sentinel names. After each failure it asks a Sentinel
 * again, another one each time, for a second at most: node-redis asks one, and waits for ever if that stands still.
 */
class SentinelConnection implements RedisConnection {
  readonly isCluster = false
  readonly #like: Resolver
  readonly #options: Options
  readonly #deadlines = new Deadlines(CONNECT_TIMEOUT_MS)
  #primary: OwnConnection | undefined
  #address = ''
  #attempts = 0
  #isAsking = false
  #isClosed = false
  #timer: NodeJS.Timeout | undefined
  #lastError: unknown
  #onReady = (): void => {}
  #onFailure = (): void => {}

  constructor(like: Resolver, options: Options) {
    this.#like = like
    this.#options = options
    this.#ask()
  }

  get isReady(): boolean {
    return this.#primary?.isReady === true
  }

  nodeOf(): string {
    return ''
  }

  send(command: Command): Promise<unknown> {
    return this.#primary?.send(command) ?? Promise.reject(new NotSent())
  }

  primaries(): readonly Primary[] {
    return [{ node: '', send: (command) => this.send(command) }]
  }

  refresh(): void {}

  onReady(listener: () => void): void {
    this.#onReady = listener
  }

  onFailure(listener: () => void): void {
    this.#onFailure = listener
  }

  failureOf(): unknown {
    return this.isReady ? undefined : (this.#primary?.failureOf() ?? this.#lastError)
  }

  renew(): boolean {
    this.#primary?.renew()
    this.#ask()
    return true
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#deadlines.expireAll()
    await this.#primary?.close()
  }

  #ask(): void {
    if (this.#isAsking || this.#isClosed) return
    this.#isAsking = true
    clearTimeout(this.#timer)
    this.#resolve().then(
      (client) => this.#settle(() => this.#follow(client)),
      (error: unknown) =>
        this.#settle(() => {
          this.#lastError = error
          this.#onFailure()
          this.#askLater()
        }),
    )
  }

  #settle(act: () => void): void {
    this.#isAsking = false
    if (!this.#isClosed) act()
  }

  #askLater(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#ask(), reconnectMs(this.#attempts))
  }

  /** Resolves with a client of the primary that a Sentinel names. It is closed already. */
  async #resolve(): Promise<NodeRedisClient> {
    const { sentinelRootNodes, nodeClientOptions, sentinelClientOptions } = this.#options
    const first = this.#attempts++ % sentinelRootNodes.length
    const resolver = this.#like.duplicate({
      sentinelRootNodes: [...sentinelRootNodes.slice(first), ...sentinelRootNodes.slice(0, first)],
      nodeClientOptions: briefly(nodeClientOptions),
      sentinelClientOptions: briefly(sentinelClientOptions),
      maxCommandRediscovers: 0,
      masterPoolSize: 1,
      replicaPoolSize: 0,
      scanInterval: 0,
      reserveClient: false,
    })
    let lastError: unknown
    resolver.on('error', (error) => {
      lastError = error
    })
    try {
      await this.#deadlines.within(resolver.connect())
      const found = resolver._execute(false, async (client) => ({ client }))
      return (await this.#deadlines.within(found)).client
    } catch (error) {
      throw lastError instanceof Error ? lastError : error
    } finally {
      resolver.destroy().catch(() => {}) // its sockets end by their own timeout
    }
  }

  /** Connects to the primary, if it is another one than before. */
  #follow(client: NodeRedisClient): void {
    const { host, port } = (client.options?.socket ?? {}) as { host?: string; port?: number }
    const address = `${host}:${port}`
    if (this.#primary?.isReady) this.#attempts = 0
    if (address === this.#address) return
    this.#address = address
    void this.#primary?.close()
    const primary = new OwnConnection(() => connectedLike(client, { socketTimeout: undefined }))
    this.#primary = primary
    primary.onReady(() => {
      this.#attempts = 0
      this.#onReady()
    })
    primary.onFailure(() => {
      this.#onFailure()
      if (!this.#isAsking) this.#askLater()
    })
  }
}

/** The options of a client that gives up a server that is silent. */
const briefly = (options: ClientOptions = {}): object => ({
  ...options,
  socket: {
    ...options.socket,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: CONNECT_TIMEOUT_MS,
    reconnectStrategy: false,
  },
})
