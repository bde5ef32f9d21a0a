// A Redis Cluster of three primaries, each with a replica.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { poll } from './poll.js'
import { freePort, HOST } from './ports.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { sendOnce } from './wire.js'

const PRIMARIES = 3
const SLOTS = 16_384
/** A node that is silent for so long is held to have failed. Shorter, and a busy machine makes failovers. */
const NODE_TIMEOUT_MS = 2_000
const MIGRATE_TIMEOUT_MS = 10_000

export interface Migration {
  readonly slot: number
  /** The owner until `finish`: it has the keys that were not moved, and asks for the others at `to`. */
  readonly from: Server
  readonly to: Server
  /** Moves the other keys, and makes `to` the owner. Resolves when all nodes know. */
  finish(): Promise<void>
}

/**
 * Starts six nodes. Resolves when each is in good health, as {@link Cluster.healthy} says.
 * @param args more arguments of each node
 */
export async function startCluster(args: readonly string[] = []): Promise<Cluster> {
  const cluster = new Cluster(mkdtempSync(join(tmpdir(), 'millrace-cluster-')), args)
  try {
    await cluster.start()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

export class Cluster {
  /** First those that start as primaries. Node `i + 3` starts as the replica of node `i`. */
  readonly nodes: Server[] = []
  readonly #dir: string
  readonly #args: readonly string[]
  /** By port. */
  readonly #ids = new Map<number, string>()

  /** @internal Use {@link startCluster}. */
  constructor(dir: string, args: readonly string[]) {
    this.#dir = dir
    this.#args = args
  }

  /** @internal */
  async start(): Promise<void> {
    const started = await Promise.allSettled(
      Array.from({ length: 2 * PRIMARIES }, () =>
        startRedis({ dir: mkdtempSync(join(this.#dir, 'node-')), args: () => clusterArgs(this.#args) }),
      ),
    )
    for (const outcome of started) if (outcome.status === 'fulfilled') this.nodes.push(outcome.value)
    for (const outcome of started) if (outcome.status === 'rejected') throw outcome.reason
    for (const { port } of this.nodes) this.#ids.set(port, await sendOnce(port, 'CLUSTER', 'MYID'))
    await this.#join()
    await this.healthy()
  }

  /** Resolves when all running nodes say `cluster_state:ok` and agree on owners, and replicas are linked. */
  async healthy(): Promise<void> {
    await poll(async () => {
      const nodes = this.#running()
      const views = await Promise.all(nodes.map(({ port }) => viewOf(port)))
      return views.every((view) => view === views[0]) && (await allOf(nodes, isHealthy))
    }, 'a cluster in good health')
  }

  /** The slot of a key, as the server computes it. */
  slotOf(key: string): Promise<number> {
    return sendOnce(this.nodes[0]!.port, 'CLUSTER', 'KEYSLOT', key)
  }

  /** The primary that owns a slot. */
  async ownerOf(slot: number): Promise<Server> {
    const [asked] = this.#running()
    const ranges: [number, number, [string, number]][] = await sendOnce(asked!.port, 'CLUSTER', 'SLOTS')
    const range = ranges.find(([first, last]) => first <= slot && slot <= last)
    return this.nodes.find(({ port }) => port === range?.[2][1])!
  }

  /** Whether a node says that it is a primary. */
  isPrimary({ port }: Server): Promise<boolean> {
    return hasRole(port, 'master')
  }

  /** The running replicas of a primary. */
  async replicasOf(primary: Server): Promise<Server[]> {
    const lines: string[] = await sendOnce(primary.port, 'CLUSTER', 'REPLICAS', this.#idOf(primary))
    const ids = lines.filter((line) => !/ \S*fail\S* /.test(line)).map((line) => line.split(' ', 1)[0])
    return this.nodes.filter((node) => ids.includes(this.#idOf(node)))
  }

  /**
   * Begins to move a slot to another primary: the slot is MIGRATING on its owner and IMPORTING there, and
   * these keys of it have moved.
   */
  async migrate(slot: number, to: Server, keys: readonly string[] = []): Promise<Migration> {
    const from = await this.ownerOf(slot)
    await sendOnce(to.port, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', this.#idOf(from))
    await sendOnce(from.port, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', this.#idOf(to))
    await moveKeys(from, to, keys)
    return { slot, from, to, finish: () => this.#finish(slot, from, to) }
  }

  /** Makes a replica the primary of its slots while its primary runs. Resolves when all nodes know. */
  async promote(replica: Server): Promise<void> {
    await sendOnce(replica.port, 'CLUSTER', 'FAILOVER')
    await poll(() => hasRole(replica.port, 'master'), 'the promotion of the replica')
    await this.healthy()
  }

  /** Kills a primary. Resolves with the replica that has taken its slots, when all nodes know. */
  async failover(primary: Server): Promise<Server> {
    const [replica] = await this.replicasOf(primary)
    if (replica === undefined) throw new Error(`the node on port ${primary.port} has no replica`)
    await primary.kill()
    await poll(() => hasRole(replica.port, 'master'), 'the promotion of the replica')
    await this.healthy()
    return replica
  }

  /** Ends all processes and removes their files. */
  async stop(): Promise<void> {
    // by SIGKILL: at SIGTERM a primary waits for its replicas
    await Promise.all(this.nodes.map((node) => node.kill()))
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #join(): Promise<void> {
    const [first] = this.nodes
    const [, bus] = /@(\d+)/.exec(await sendOnce(first!.port, 'CLUSTER', 'NODES')) ?? []
    for (const [index, { port }] of this.nodes.entries()) {
      await sendOnce(port, 'CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
      if (index > 0) await sendOnce(port, 'CLUSTER', 'MEET', HOST, first!.port, bus!)
      if (index < PRIMARIES) await sendOnce(port, 'CLUSTER', 'ADDSLOTS', ...slotsOf(index))
    }
    await poll(() => allOf(this.nodes, ({ port }) => knows(port, this.nodes.length)), 'the nodes to meet')
    for (const [index, replica] of this.nodes.slice(PRIMARIES).entries())
      await sendOnce(replica.port, 'CLUSTER', 'REPLICATE', this.#idOf(this.nodes[index]!))
  }

  async #finish(slot: number, from: Server, to: Server): Promise<void> {
    const count: number = await sendOnce(from.port, 'CLUSTER', 'COUNTKEYSINSLOT', slot)
    await moveKeys(from, to, await sendOnce(from.port, 'CLUSTER', 'GETKEYSINSLOT', slot, count))
    for (const { port } of [to, from])
      await sendOnce(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', this.#idOf(to))
    await this.healthy()
  }

  #idOf({ port }: Server): string {
    return this.#ids.get(port)!
  }

  #running(): Server[] {
    return this.nodes.filter((node) => node.isRunning)
  }
}

async function clusterArgs(more: readonly string[]): Promise<string[]> {
  return [
    ...['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())],
    ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
    // a replica whose link was broken for long may be promoted too
    ...['--cluster-replica-validity-factor', '0'],
    ...more,
  ]
}

/** The slots of one of the nodes that start as primaries. */
function slotsOf(index: number): number[] {
  const start = Math.ceil((SLOTS * index) / PRIMARIES)
  const end = Math.ceil((SLOTS * (index + 1)) / PRIMARIES)
  return Array.from({ length: end - start }, (_, offset) => start + offset)
}

/** Whether a node knows so many nodes, itself included, and has met them all. */
async function knows(port: number, count: number): Promise<boolean> {
  const lines = (await sendOnce(port, 'CLUSTER', 'NODES')).trim().split('\n')
  return lines.length === count && !lines.some((line: string) => line.includes('handshake'))
}

async function isHealthy({ port }: Server): Promise<boolean> {
  const info: string = await sendOnce(port, 'CLUSTER', 'INFO')
  const replication: string = await sendOnce(port, 'INFO', 'replication')
  return info.includes('cluster_state:ok') && !replication.includes('master_link_status:down')
}

async function hasRole(port: number, role: 'master' | 'slave'): Promise<boolean> {
  return (await sendOnce(port, 'ROLE'))[0] === role
}

/** Who owns which slots and who replicates whom, as a node sees it. */
async function viewOf(port: number): Promise<string> {
  const lines: string[] = (await sendOnce(port, 'CLUSTER', 'NODES')).trim().split('\n')
  const facts = lines.map((line) => {
    const [id, , flags, primary, , , , , ...slots] = line.split(' ')
    const role = flags!.replace('myself,', '')
    return [id, role, primary, ...slots.filter((range) => !range.startsWith('['))].join(' ')
  })
  return facts.sort().join('\n')
}

async function allOf(nodes: readonly Server[], isSo: (node: Server) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(nodes.map(isSo))).every(Boolean)
}

async function moveKeys(from: Server, to: Server, keys: readonly string[]): Promise<void> {
  if (keys.length > 0)
    await sendOnce(from.port, 'MIGRATE', HOST, to.port, '', 0, MIGRATE_TIMEOUT_MS, 'KEYS', ...keys)
}
