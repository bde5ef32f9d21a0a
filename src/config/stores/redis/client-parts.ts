// What the store needs of a client.

type Listener = (first: unknown, second: unknown) => void

/** The parts of a client of ioredis or iovalkey that the store uses: of `Redis` and of `Cluster`. */
export interface RedisConfigClient {
  readonly status: string
  readonly isCluster?: boolean
  readonly options: object
  callBuffer(command: string, ...args: (string | Buffer | number)[]): Promise<unknown>
  duplicate(...args: never[]): unknown
  connect(): Promise<void>
  on(event: string | symbol, listener: Listener): unknown
}

/** A connection of the store's own, which listens to a channel. */
export interface Subscriber {
  readonly stream?: { unref?(): unknown }
  on(event: string, listener: Listener): unknown
  connect(): Promise<void>
  subscribe(channel: string): Promise<unknown>
  disconnect(): void
}

/** A server that does not accept a connection by then is away. */
export const CONNECT_TIMEOUT_MS = 1_000
