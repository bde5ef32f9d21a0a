import { type Command, NotSent, type Primary } from './connection.js'
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
  #owners = ''

  nodeOf(key: string): string {
    return this.client.slots[slotOf(key)]?.[0] ?? ''
  }

  async send(command: Command, key: string): Promise<unknown> {
    if (!this.isReady) throw new NotSent()
    const node = this.#node(this.nodeOf(key))
    if (node === undefined) return callOf(this.client, command) // another node says by MOVED who owns the slot
    if (node.status === 'wait') node.connect().catch(() => {}) // what it means for a call shows at the next one
    if (node.status !== 'ready') throw new NotSent()
    try {
      return await this.#turnOf(node).send(command)
    } catch (error) {
      if (!isElsewhere(error)) throw error
      return callOf(this.client, command) // follows MOVED and ASK, and learns the new owner
    }
  }

  primaries(): readonly Primary[] {
    return [...this.#ownerNames()].map((node) => ({
      node,
      send: async (command) => {
        const client = this.#node(node)
        if (client === undefined) throw new NotSent()
        return callOf(client, command)
      },
    }))
  }

  /** Calls `listener` also when other nodes own slots. */
  override onReady(listener: () => void): void {
    super.onReady(() => {
      this.#noteOwners()
      listener()
    })
    this.listen('refresh', () => {
      if (this.isReady && this.#noteOwners()) listener()
    })
  }

  refresh(): void {
    if (this.isReady) this.client.refreshSlotsCache()
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

  /** Returns whether the owners have changed. */
  #noteOwners(): boolean {
    const owners = [...this.#ownerNames()].sort().join()
    if (owners === this.#owners) return false
    this.#owners = owners
    this.#nodes.clear()
    return true
  }
}

/** Whether a node has refused to run a command because another node has its slot, or its key. */
const isElsewhere = (error: unknown): boolean => error instanceof Error && /^(MOVED|ASK) /.test(error.message)
