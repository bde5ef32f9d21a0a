import { MillraceError } from '../core/errors.js'
import type { Command, RedisConnection } from './connection.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from './reconnect.js'

/** The parts of a client of ioredis or iovalkey that the limiter uses. */
export interface IoredisClient {
  readonly status: string
  readonly isCluster?: boolean
  readonly options: object
  call(command: string, ...args: (string | Buffer)[]): Promise<unknown>
  duplicate(...args: never[]): IoredisClient
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (error?: Error) => void): unknown
  off(event: string, listener: (error?: Error) => void): unknown
}

interface SingleClient extends IoredisClient {
  duplicate(options: object): SingleClient
  pipeline(): Pipeline
}

interface ClusterClient extends IoredisClient {
  duplicate(startupNodes: [], options: object): ClusterClient
  nodes(role: 'master'): readonly IoredisClient[]
}

interface Pipeline {
  call(command: string, ...args: (string | Buffer)[]): Pipeline
  exec(): Promise<readonly [error: Error | null, reply: unknown][] | null>
}

interface Options {
  readonly enableOfflineQueue?: boolean
  readonly autoResendUnfulfilledCommands?: boolean
  readonly retryDelayOnFailover?: number
  readonly redisOptions?: Options
  readonly scaleReads?: unknown
  readonly keyPrefix?: string
  readonly stringNumbers?: boolean
}

/** The options of a connection that sends no command twice. */
const SINGLE = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  lazyConnect: false,
  readOnly: false,
  keyPrefix: '',
  stringNumbers: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: 0, // the other side may never close it
  maxRetriesPerRequest: 0, // a command of a lost connection fails at the next attempt to connect
  retryStrategy: reconnectMs,
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} as const

export function isIoredis(client: unknown): client is IoredisClient {
  if (typeof client !== 'object' || client === null) return false
  const { status, call, duplicate, disconnect } = client as Partial<IoredisClient>
  return (
    typeof status === 'string' &&
    [call, duplicate, disconnect].every((method) => typeof method === 'function')
  )
}

export function fromIoredis(client: IoredisClient, own: boolean): RedisConnection {
  if (client.isCluster) {
    const cluster = client as ClusterClient
    return new ClusterConnection(own ? ownCluster(cluster) : checked(cluster, true), own)
  }
  const single = client as SingleClient
  return new SingleConnection(own ? single.duplicate(SINGLE) : checked(single, false), own)
}

function ownCluster(client: ClusterClient): ClusterClient {
  const { redisOptions = {} } = client.options as Options
  return client.duplicate([], {
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    lazyConnect: false,
    scaleReads: 'master',
    keyPrefix: '',
    clusterRetryStrategy: reconnectMs,
    retryDelayOnFailover: 0, // it would send a command of a lost connection again
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 20, // the server has not run the command
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    redisOptions: { ...redisOptions, ...SINGLE, retryStrategy: null },
  })
}

/** @throws MillraceError for options by which a command may be sent twice, or be sent later */
function checked<C extends IoredisClient>(client: C, isCluster: boolean): C {
  const options = client.options as Options
  const at = isCluster ? (options.redisOptions ?? {}) : options
  if (options.enableOfflineQueue !== false) refuse('enableOfflineQueue', options.enableOfflineQueue, 'false')
  if (at.autoResendUnfulfilledCommands !== false)
    refuse('autoResendUnfulfilledCommands', at.autoResendUnfulfilledCommands, 'false')
  if (isCluster && options.retryDelayOnFailover !== 0)
    refuse('retryDelayOnFailover', options.retryDelayOnFailover, '0')
  if (at.stringNumbers) refuse('stringNumbers', at.stringNumbers, 'false')
  if (options.keyPrefix) refuse('keyPrefix', options.keyPrefix, 'none: the option prefix of the limiter')
  return client
}

function refuse(option: string, value: unknown, expected: string): never {
  throw new MillraceError(
    'ERR_MILLRACE_INVALID_OPTION',
    `client.options.${option}`,
    value,
    `${expected}, with ownConnection: false`,
  )
}

abstract class Connection<C extends IoredisClient> implements RedisConnection {
  abstract readonly isCluster: boolean
  protected readonly client: C
  protected readonly isOwn: boolean
  /** Errors of a connection that is lost are no news: the calls that it affects settle by themselves. */
  readonly #ignore = (): void => {}
  #listener: (() => void) | undefined

  constructor(client: C, isOwn: boolean) {
    this.client = client
    this.isOwn = isOwn
    if (isOwn) client.on('error', this.#ignore)
  }

  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  onReady(listener: () => void): void {
    this.#listener = listener
    this.client.on('ready', listener)
  }

  async close(): Promise<void> {
    if (this.#listener !== undefined) this.client.off('ready', this.#listener)
    if (this.isOwn) this.client.disconnect()
  }

  abstract renew(): void
  abstract send(command: Command, key: string): Promise<unknown>
  abstract primaries(): readonly ((command: Command) => Promise<unknown>)[]
}

interface Sent {
  readonly command: Command
  resolve(reply: unknown): void
  reject(error: unknown): void
}

// Captured at load, so that fake timers of a test don't stop the batches.
const { nextTick } = process

/** A pipeline has its first reply when it has its last. */
const MOST_TOGETHER = 64

/** Sends together what is sent without a turn of the event loop between. */
class SingleConnection extends Connection<SingleClient> {
  readonly isCluster = false
  #batch: Sent[] = []

  send(command: Command): Promise<unknown> {
    if (!this.isReady) return Promise.reject(new Error('no connection to Redis'))
    return new Promise((resolve, reject) => {
      if (this.#batch.length === 0) nextTick(() => this.#flush())
      this.#batch.push({ command, resolve, reject })
    })
  }

  primaries(): readonly ((command: Command) => Promise<unknown>)[] {
    return [(command) => callOf(this.client, command)]
  }

  renew(): void {
    // In other states the client is about to connect.
    if (this.isOwn && ['connect', 'ready'].includes(this.client.status)) this.client.disconnect(true)
  }

  #flush(): void {
    const all = this.#batch
    this.#batch = []
    for (let at = 0; at < all.length; at += MOST_TOGETHER)
      this.#sendTogether(all.slice(at, at + MOST_TOGETHER))
  }

  /** By a pipeline, also one command alone: so the answers come in the order of the commands. */
  #sendTogether(batch: readonly Sent[]): void {
    const pipeline = this.client.pipeline()
    for (const { command } of batch) pipeline.call(command[0] as string, ...command.slice(1))
    pipeline.exec().then(
      (replies) => {
        for (const [i, { resolve, reject }] of batch.entries()) {
          const [error, reply] = replies?.[i] ?? [new Error('no reply of Redis'), undefined]
          if (error) reject(error)
          else resolve(reply)
        }
      },
      (error: unknown) => {
        for (const { reject } of batch) reject(error)
      },
    )
  }
}

class ClusterConnection extends Connection<ClusterClient> {
  readonly isCluster = true

  /** Replies of other nodes would hide the silence of one. */
  renew(): void {}

  send(command: Command): Promise<unknown> {
    return callOf(this.client, command)
  }

  primaries(): readonly ((command: Command) => Promise<unknown>)[] {
    return this.client.nodes('master').map((node) => (command) => callOf(node, command))
  }
}

const callOf = (client: IoredisClient, [name, ...args]: Command): Promise<unknown> =>
  client.call(name as string, ...args)
