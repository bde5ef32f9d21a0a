import { messageOf } from '../../remote/last-error.js'
import { NotSent } from '../../remote/not-sent.js'
import type { Command, Primary } from './connection.js'
import { type ClusterClient, callOf, type NodeClient } from './ioredis-client.js'
import { IoredisConnection, Turn } from './ioredis-connection.js'
import { slotOf } from './slots.js'

/**
 * The connection to a Cluster. Commands go to the primary that owns the slot of their key, those of one turn of the
 * event loop together. Only what a node has refused to run, because the slot is elsewhere, goes out again.
 */
export class ClusterConnection extends IoredisConnection<ClusterClient> {
  readonly isCluster = true
  readonly #nodes = new Map<string, NodeClient>()
  readonly #turns = new WeakMap<NodeClient, Turn>()
  #listener = (): void => {}
  #owners = ''
  /** Those whose connections are noticed. */
  readonly #watched = new Map<NodeClient, () => void>()
  /** By the name of a node to which there is no connection. */
  readonly #nodeErrors = new Map<string, unknown>()

  constructor(client: ClusterClient, isOwn: boolean) {
    super(client, isOwn)
    for (const node of client.nodes('master')) this.#watch(node)
    this.listen('+node', (node) => this.#watch(node as NodeClient))
    this.listen('-node', (node) => this.#unwatch(node as NodeClient))
    this.listen('node error', (error, node) => this.#noteNodeError(error, String(node)))
    this.listen('refresh', () => this.#noteOwners())
  }

  nodeOf(key: string): string {
    return this.client.slots[slotOf(key)]?.[0] ?? ''
  }

  async send(command: Command, key: string): Promise<unknown> {
    if (!this.isReady) throw new NotSent()
    const node = this.#node(this.nodeOf(key))
    if (node === undefined) this.refresh() // it connects to the owners
    if (node?.status !== 'ready') throw new NotSent()
    try {
      return await this.#turnOf(node).send(command)
    } catch (error) {
      const [kind, , owner] = error instanceof Error ? error.message.split(' ') : []
      if (kind !== 'MOVED' && kind !== 'ASK') throw error
      // It follows MOVED and ASK, and learns the new owner. It takes an owner that is not connected for down.
      if (kind === 'ASK' || this.#node(owner!)?.status === 'ready') return callOf(this.client, command)
      this.refresh()
      throw error
    }
  }

  primaries(): readonly Primary[] {
    return [...this.#ownerNames()].map((node) => ({
      node,
      send: async (command) => {
        const client = this.#node(node)
        if (client === undefined) throw new NotSent()
        const reply = await callOf(client, command)
        // A node that has just connected answers INFO before it takes other commands.
        if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve))
        return reply
      },
    }))
  }

  /** Calls `listener` after each connection to a node, and when other nodes own slots. */
  override onReady(listener: () => void): void {
    super.onReady(listener)
    this.#listener = listener
  }

  refresh(): void {
    if (this.isReady) this.client.refreshSlotsCache()
  }

  /** Replies of other nodes would hide the silence of one. */
  renew(): boolean {
    return false
  }

  override async close(): Promise<void> {
    for (const node of this.#watched.keys()) this.#unwatch(node)
    await super.close()
  }

  #noteNodeError(error: unknown, node: string): void {
    const isClosed = messageOf(error) === 'Connection is closed.' // all that ioredis says of a node it can't reach
    const named = isClosed ? new Error(`no connection to ${node}`, { cause: error }) : error
    this.#nodeErrors.set(node, named)
    if (!this.isReady) this.noteError(named)
  }

  override failureOf(key: string): unknown {
    if (!this.isReady) return super.failureOf(key)
    const name = this.nodeOf(key)
    return this.#node(name)?.status === 'ready' ? undefined : this.#nodeErrors.get(name)
  }

  #noteConnection({ options }: NodeClient): void {
    this.#nodeErrors.delete(`${options.host}:${options.port}`)
    if (this.isReady) this.#listener()
  }

  #watch(node: NodeClient): void {
    if (this.#watched.has(node)) return
    const listener = () => this.#noteConnection(node)
    this.#watched.set(node, listener)
    node.on('ready', listener)
  }

  #unwatch(node: NodeClient): void {
    const listener = this.#watched.get(node)
    if (listener !== undefined) node.off('ready', listener)
    this.#watched.delete(node)
  }

  /** Undefined for a node to which there is no connection. */
  #node(name: string): NodeClient | undefined {
    const known = this.#nodes.get(name)
    if (known?.status === 'ready') return known
    const nodes = this.client.nodes('master')
    const found = nodes.find(({ options }) => `${options.host}:${options.port}` === name)
    if (found === undefined) this.#nodes.delete(name)
    else this.#nodes.set(name, found)
    return found
  }

  #turnOf(node: NodeClient): Turn {
    const turn = this.#turns.get(node) ?? new Turn(node)
    this.#turns.set(node, turn)
    return turn
  }

  #ownerNames(): Set<string> {
    return new Set(this.client.slots.flatMap((nodes) => nodes?.[0] ?? []))
  }

  /** Connects to the owners of slots, and tells if they are others than before. */
  #noteOwners(): void {
    if (!this.isReady) return // before the first connection, a node that connects would be taken for down
    const names = this.#ownerNames()
    for (const name of names) {
      const node = this.#node(name)
      if (node?.status === 'wait') node.connect().catch(() => {}) // calls find that it has failed
    }
    const owners = [...names].sort().join()
    if (owners === this.#owners) return
    this.#owners = owners
    for (const name of this.#nodeErrors.keys()) if (!names.has(name)) this.#nodeErrors.delete(name)
    this.#nodes.clear()
    this.#listener()
  }
}
