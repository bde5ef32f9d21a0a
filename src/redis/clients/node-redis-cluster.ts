import { invalid } from '../../core/errors.js'
import { Deadlines } from '../../remote/deadlines.js'
import { messageOf } from '../../remote/last-error.js'
import { NotSent } from '../../remote/not-sent.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../../remote/reconnect.js'
import type { Command, Primary, RedisConnection } from './connection.js'
import { type NodeRedisClient, OwnConnection } from './node-redis.js'
import { slotOf } from './slots.js'

interface Socket {
  readonly host?: string
  readonly port?: number
}

/** A node, as a Cluster of node-redis makes a client for it. */
interface Node {
  readonly address: string
  readonly host: string
  readonly port: number
  readonly id: string
  readonly readonly: false
  client?: NodeRedisClient
}

/** The parts of a Cluster of node-redis 6 that the limiter uses. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly masters: readonly unknown[]
  nodeClient(node: never): Promise<unknown>
  duplicate(overrides?: never): unknown
  destroy(): void
}

interface Options {
  readonly rootNodes: readonly { readonly url?: string; readonly socket?: Socket }[]
  readonly defaults?: { readonly socket?: object }
}

/** The same, with what is no part of its types. */
interface Factory {
  readonly _options: Options
  nodeClient(node: Node): Promise<unknown>
  duplicate(overrides: object): Factory
  on(event: string, listener: () => void): unknown
}

export const isCluster = (client: unknown): client is NodeRedisCluster =>
  typeof (Object(client) as Partial<Factory>).nodeClient === 'function'

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function fromCluster(client: NodeRedisCluster, own: boolean): RedisConnection {
  if (!own) throw invalid('ownConnection', false, 'true for a Cluster of node-redis')
  const { _options } = client as unknown as Partial<Factory>
  if (!Array.isArray(_options?.rootNodes))
    throw invalid('client', 'a Cluster of an older node-redis', 'one of node-redis 6, or of ioredis')
  return new ClusterConnection(client)
}

type SlotRange = readonly [from: number, to: number, primary: readonly [host: string | null, port: number]]

/**
 * The connection to a Cluster by clients of single nodes, which a Cluster of node-redis makes. It looks itself who owns
 * which slots: node-redis asks one node, and waits for ever if that stands still. Only what a node has refused to run
 * goes out again.
 */
class ClusterConnection implements RedisConnection {
  readonly isCluster = true
  readonly #factory: Factory
  readonly #roots: readonly string[]
  readonly #nodes = new Map<string, OwnConnection>()
  /** By slot, the address of its owner. */
  #owners: (string | undefined)[] = []
  readonly #deadlines = new Deadlines(CONNECT_TIMEOUT_MS)
  #isReady = false
  #isAsking = false
  #isClosed = false
  #lastError: unknown
  #onReady = (): void => {}
  #onFailure = (): void => {}

  constructor(client: NodeRedisCluster) {
    const like = client as unknown as Factory
    const { rootNodes, defaults } = like._options
    this.#factory = like.duplicate({
      topologyRefreshOnReconnectionAttemptStrategy: false,
      defaults: {
        ...defaults,
        disableOfflineQueue: true,
        maintNotifications: 'disabled',
        socket: {
          ...defaults?.socket,
          connectTimeout: CONNECT_TIMEOUT_MS,
          reconnectStrategy: reconnectMs,
        },
      },
    })
    this.#roots = rootNodes.map(addressOf)
    for (const address of this.#roots) this.#node(address)
  }

  get isReady(): boolean {
    return this.#isReady
  }

  nodeOf(key: string): string {
    return this.#owners[slotOf(key)] ?? ''
  }

  async send(command: Command, key: string): Promise<unknown> {
    const slot = slotOf(key)
    const node = this.#nodes.get(this.#owners[slot] ?? '')
    if (!node?.isReady) {
      this.refresh()
      throw new NotSent()
    }
    try {
      return await node.send(command)
    } catch (error) {
      const [kind, , address = ''] = messageOf(error).split(' ')
      if (kind !== 'MOVED' && kind !== 'ASK') throw error
      const other = this.#node(address)
      if (kind === 'MOVED') {
        this.#owners[slot] = address
        this.refresh()
      } else if (other.isReady) {
        // Both go out together, with nothing between them.
        const [, reply] = await Promise.all([other.send(['ASKING']), other.send(command)])
        return reply
      }
      throw error // the channel sends it again, to the owner
    }
  }

  primaries(): readonly Primary[] {
    return [...this.#ownerNames()].map((node) => ({
      node,
      send: (command) => this.#nodes.get(node)?.send(command) ?? Promise.reject(new NotSent()),
    }))
  }

  refresh(): void {
    if (!this.#isAsking && !this.#isClosed) void this.#askOwners()
  }

  onReady(listener: () => void): void {
    this.#onReady = listener
  }

  onFailure(listener: () => void): void {
    this.#onFailure = listener
  }

  failureOf(key: string): unknown {
    if (!this.isReady) return this.#lastError
    const node = this.#nodes.get(this.nodeOf(key))
    return node?.failureOf()
  }

  /** Replies of other nodes would hide the silence of one. */
  renew(): boolean {
    return false
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#deadlines.expireAll()
    await Promise.all([...this.#nodes.values()].map((node) => node.close()))
  }

  #ownerNames(): Set<string> {
    return new Set(this.#owners.flatMap((owner) => owner ?? []))
  }

  /** The connection to a node; a new one if there is none. */
  #node(address: string): OwnConnection {
    const known = this.#nodes.get(address)
    if (known !== undefined) return known
    const colon = address.lastIndexOf(':')
    const [host, port] = [address.slice(0, colon), Number(address.slice(colon + 1))]
    const made = new OwnConnection(() => {
      const node: Node = { address, host, port, id: address, readonly: false }
      this.#factory.nodeClient(node).catch(() => {}) // the connection hears of it by events
      return node.client!
    })
    this.#nodes.set(address, made)
    made.onReady(() => {
      this.refresh()
      if (this.#isReady) this.#onReady()
      else this.#noteReady()
    })
    made.onFailure(() => {
      this.#lastError = made.failureOf() ?? this.#lastError
      this.#noteReady()
      if (!this.#isReady) this.#onFailure()
    })
    return made
  }

  /** The Cluster is ready when each owner of slots has been connected to, or has failed once. */
  #noteReady(): void {
    const owners = [...this.#ownerNames()].map((name) => this.#nodes.get(name)!)
    if (this.#isReady || owners.length === 0) return
    if (!owners.every((node) => node.isReady || node.failureOf() !== undefined)) return
    this.#isReady = owners.some((node) => node.isReady)
    if (this.#isReady) this.#onReady()
  }

  /** Asks one node after the other who owns which slots. */
  async #askOwners(): Promise<void> {
    this.#isAsking = true
    const ready = [...this.#nodes].filter(([, node]) => node.isReady)
    if (ready.length === 0) for (const address of this.#roots) this.#node(address)
    for (const [address, node] of ready) {
      const ranges = await this.#deadlines.within(node.send(['CLUSTER', 'SLOTS'])).catch((error: unknown) => {
        this.#lastError = error
      })
      if (this.#isClosed) return
      if (Array.isArray(ranges) && ranges.length > 0) {
        this.#adopt(ranges as SlotRange[], address)
        break
      }
    }
    this.#isAsking = false
    if (!this.isReady) this.#onFailure()
  }

  #adopt(ranges: readonly SlotRange[], asked: string): void {
    const before = [...this.#ownerNames()].sort().join()
    const owners: (string | undefined)[] = new Array(16_384)
    for (const [from, to, [host, port]] of ranges)
      owners.fill(`${host || asked.slice(0, asked.lastIndexOf(':'))}:${port}`, from, to + 1)
    this.#owners = owners
    const names = this.#ownerNames()
    for (const name of names) this.#node(name)
    for (const [address, node] of this.#nodes) {
      if (names.has(address)) continue
      this.#nodes.delete(address)
      void node.close()
    }
    if (!this.#isReady) this.#noteReady()
    else if ([...names].sort().join() !== before) this.#onReady()
  }
}

function addressOf({ url, socket }: Options['rootNodes'][number]): string {
  if (url !== undefined && !URL.canParse(url))
    // not shown: it may contain a password
    throw invalid('client', 'a root node with another url', 'root nodes whose url is a URL')
  const { hostname, port } = url === undefined ? { hostname: '', port: '' } : new URL(url)
  return `${socket?.host ?? (hostname || 'localhost')}:${socket?.port ?? (port || 6379)}`
}
