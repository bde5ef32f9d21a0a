import { MillraceError } from '../core/errors.js'
import { LONGEST_TIMER_MS } from '../core/long-timer.js'

/** Options of a command of the package `memcache`: how its reply is read. */
export interface ReplyOptions {
  readonly isMultiline?: boolean
  readonly requestedKeys?: string[]
}

/** The parts of a node of the package `memcache` that the limiter uses: one server, one connection. */
export interface MemcacheNode {
  readonly id: string
  readonly host: string
  readonly port: number
  readonly uri: string
  readonly keepAlive: boolean
  readonly keepAliveDelay: number
  readonly hasSaslCredentials: boolean
}

/** The parts of a client of the package `memcache` that the limiter uses. */
export interface MemcacheClient {
  readonly nodes: readonly MemcacheNode[]
  /** Which node has a key. */
  readonly hash: { getNodesByKey(key: string): readonly MemcacheNode[] }
}

/** A node that the limiter has made. It sends each command once, and none before it is connected. */
export interface OwnNode extends MemcacheNode {
  readonly socket: { cork(): void; uncork(): void } | undefined
  connect(): Promise<void>
  disconnect(): Promise<void>
  command(command: string, options?: ReplyOptions): Promise<unknown>
  on(event: 'close' | 'error', listener: (error: unknown) => void): unknown
}

/** The class of nodes. */
type NodeClass = new (
  host: string,
  port: number,
  options: { timeout: number; keepAlive: boolean; keepAliveDelay: number },
) => OwnNode

/**
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for what is no client of the package `memcache`, and for one
 * whose nodes need a password or TLS
 */
export function checkMemcacheClient(client: unknown): asserts client is MemcacheClient {
  if (!isMemcacheClient(client)) {
    const expected = 'a client of the package memcache, with at least one node'
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'client', client, expected)
  }
  const secured = client.nodes.find(({ hasSaslCredentials, uri }) => hasSaslCredentials || !isPlain(uri))
  if (secured === undefined) return
  const expected = 'a node without SASL and TLS'
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'client.nodes', secured.uri, expected)
}

const isPlain = (uri: string): boolean => uri.startsWith('memcache://')

function isMemcacheClient(client: unknown): client is MemcacheClient {
  if (typeof client !== 'object' || client === null) return false
  const { nodes, hash } = client as Partial<MemcacheClient>
  return (
    Array.isArray(nodes) &&
    nodes.length > 0 &&
    nodes.every((node) => typeof (node as Partial<OwnNode>).command === 'function') &&
    typeof hash?.getNodesByKey === 'function'
  )
}

/** A node of the same class for the same server, not connected. */
export function nodeLike(node: MemcacheNode): OwnNode {
  const { host, port, keepAlive, keepAliveDelay } = node
  const Node = node.constructor as NodeClass
  // It would close its connection after so long without traffic, but the limiter keeps it.
  return new Node(host, port, { timeout: LONGEST_TIMER_MS, keepAlive, keepAliveDelay })
}
