import { errorMonitor } from 'node:events'
import { lateError } from '../../remote/deadlines.js'
import { LastError } from '../../remote/last-error.js'
import { NotSent } from '../../remote/not-sent.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../../remote/reconnect.js'
import type { Command, Primary, RedisConnection } from './connection.js'
import { callOf, type IoredisClient, type Listener, type SingleClient } from './ioredis-client.js'

// Captured at load, so that fake timers of a test don't stop it.
const { clearTimeout, setTimeout } = globalThis
const { nextTick } = process

/** What the connections to one server and to a Cluster have in common. */
export abstract class IoredisConnection<C extends IoredisClient> implements RedisConnection {
  abstract readonly isCluster: boolean
  protected readonly client: C
  protected readonly isOwn: boolean
  protected readonly lastError = new LastError()
  #onFailure = (): void => {}
  /** Without a listener, ioredis prints each error of a connection. */
  readonly #ignore = (): void => {}
  readonly #listeners: [event: string | symbol, listener: Listener][] = []

  #reconnecting: NodeJS.Timeout | undefined

  constructor(client: C, isOwn: boolean) {
    this.client = client
    this.isOwn = isOwn
    this.listen(errorMonitor, (error) => this.noteError(error))
    this.listen('connecting', () => this.lastError.begin())
    this.listen('ready', () => this.lastError.clear())
    if (!isOwn) return
    client.on('error', this.#ignore)
    this.listen('end', this.#reconnect)
  }

  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  onReady(listener: () => void): void {
    this.listen('ready', listener)
  }

  failureOf(_key: string): unknown {
    return this.isReady ? undefined : this.lastError.value
  }

  onFailure(listener: () => void): void {
    this.#onFailure = listener
  }

  async close(): Promise<void> {
    for (const [event, listener] of this.#listeners) this.client.off(event, listener)
    clearTimeout(this.#reconnecting)
    if (this.isOwn) this.client.disconnect()
  }

  abstract nodeOf(key: string): string
  abstract send(command: Command, key: string): Promise<unknown>
  abstract primaries(): readonly Primary[]
  abstract refresh(): void
  abstract renew(): boolean

  /** A message of a Sentinel during an attempt to connect ends a client of ioredis for ever. */
  readonly #reconnect = (): void => {
    this.#reconnecting = setTimeout(() => this.client.connect().catch(this.#ignore), reconnectMs(1))
  }

  protected noteError(error: unknown): void {
    this.lastError.note(error)
    this.#onFailure()
  }

  protected listen(event: string | symbol, listener: Listener): void {
    this.#listeners.push([event, listener])
    this.client.on(event, listener)
  }
}

/** The connection to one server, by an address or by a Sentinel. */
export class SingleConnection extends IoredisConnection<SingleClient> {
  readonly isCluster = false
  readonly #turn: Turn
  /** The deadline of what ioredis asks a server before it takes commands, such as `AUTH`. */
  #greeting: NodeJS.Timeout | undefined

  constructor(client: SingleClient, isOwn: boolean) {
    super(client, isOwn)
    this.#turn = new Turn(client)
    if (!isOwn) return
    this.listen('connect', () => {
      this.#greeting = setTimeout(() => {
        this.noteError(lateError())
        this.renew()
      }, CONNECT_TIMEOUT_MS)
    })
    for (const event of ['ready', 'close']) this.listen(event, () => clearTimeout(this.#greeting))
  }

  nodeOf(): string {
    return ''
  }

  send(command: Command): Promise<unknown> {
    return this.isReady ? this.#turn.send(command) : Promise.reject(new NotSent())
  }

  primaries(): readonly Primary[] {
    return [{ node: '', send: (command) => callOf(this.client, command) }]
  }

  refresh(): void {}

  renew(): boolean {
    if (!this.isOwn) return false
    // In other states the client is about to connect.
    if (['connect', 'ready'].includes(this.client.status)) this.client.disconnect(true)
    return true
  }

  override async close(): Promise<void> {
    clearTimeout(this.#greeting)
    await super.close()
  }
}

interface Sent {
  readonly command: Command
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/** A pipeline has its first reply when it has its last. */
const MOST_TOGETHER = 64

/** Sends together what is sent without a turn of the event loop between. */
export class Turn {
  readonly #client: SingleClient
  #batch: Sent[] = []

  constructor(client: SingleClient) {
    this.#client = client
  }

  send(command: Command): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#batch.length === 0) nextTick(() => this.#flush())
      this.#batch.push({ command, resolve, reject })
    })
  }

  #flush(): void {
    const all = this.#batch
    this.#batch = []
    for (let at = 0; at < all.length; at += MOST_TOGETHER)
      this.#sendTogether(all.slice(at, at + MOST_TOGETHER))
  }

  /** By a pipeline, also one command alone: so the answers come in the order of the commands. */
  #sendTogether(batch: readonly Sent[]): void {
    const pipeline = this.#client.pipeline()
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
