import type { OutageWatch, ServersWatch } from '../remote/outage-watch.js'
import { Channel } from './channel.js'
import type { MemcacheClient, MemcacheNode } from './client.js'
import { Connection } from './connection.js'

/** The servers of a client, each with a connection of the limiter's own. */
export class Servers {
  readonly #client: MemcacheClient
  readonly #deadlineMs: number
  readonly #outages: ServersWatch
  readonly #channels = new Map<string, Channel>()
  /** Called when a server can be used again after an outage. */
  onRecovery: () => void = () => {}

  constructor(client: MemcacheClient, deadlineMs: number, outages: OutageWatch) {
    this.#client = client
    this.#deadlineMs = deadlineMs
    this.#outages = outages.of(client)
    for (const node of client.nodes) this.#channelOf(node)
  }

  /** Resolves when all servers have answered. */
  async ready(): Promise<void> {
    await Promise.all([...this.#channels.values()].map((channel) => channel.ready()))
  }

  /** The server of a name, by the client's hash. The client may have got other nodes meanwhile. */
  of(name: string): Channel {
    const { nodes, hash } = this.#client
    return this.#channelOf(nodes.length === 1 ? nodes[0]! : (hash.getNodesByKey(name)[0] ?? nodes[0]!))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#channels.values()].map((channel) => channel.close()))
  }

  #channelOf(node: MemcacheNode): Channel {
    const known = this.#channels.get(node.id)
    if (known !== undefined) return known
    const channel = new Channel(new Connection(node), node.id, this.#deadlineMs, this.#outages)
    channel.onRecovery = () => this.onRecovery()
    this.#channels.set(node.id, channel)
    return channel
  }
}
