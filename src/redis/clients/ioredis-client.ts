import type { Command } from './connection.js'

export type Listener = (value: unknown, node: unknown) => void

/** The parts of a client of ioredis or iovalkey that the limiter uses. */
export interface IoredisClient {
  readonly status: string
  readonly isCluster?: boolean
  readonly options: object
  call(command: string, ...args: (string | Buffer)[]): Promise<unknown>
  duplicate(...args: never[]): IoredisClient
  connect(): Promise<void>
  disconnect(reconnect?: boolean): void
  on(event: string | symbol, listener: Listener): unknown
  off(event: string | symbol, listener: Listener): unknown
}

export interface SingleClient extends IoredisClient {
  duplicate(options: object): SingleClient
  pipeline(): Pipeline
}

export interface ClusterClient extends IoredisClient {
  /** By slot: the primary, then its replicas, as `host:port`. */
  readonly slots: readonly (readonly string[] | undefined)[]
  duplicate(startupNodes: [], options: object): ClusterClient
  nodes(role: 'master'): readonly NodeClient[]
  emit(event: 'node error', error: unknown, node: string): unknown
  /** Asks a node who owns which slots. Does nothing while it does so already. */
  refreshSlotsCache(): void
}

/** A Cluster's connection to one node. */
export interface NodeClient extends SingleClient {
  readonly options: { readonly host?: string; readonly port?: number }
  once(event: string, listener: (value: unknown) => void): unknown
}

export interface Pipeline {
  call(command: string, ...args: (string | Buffer)[]): Pipeline
  exec(): Promise<readonly [error: Error | null, reply: unknown][] | null>
}

export const callOf = (client: IoredisClient, [name, ...args]: Command): Promise<unknown> =>
  client.call(name as string, ...args)
