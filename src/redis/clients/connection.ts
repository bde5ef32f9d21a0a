/** A command: its name, then its arguments. */
export type Command = readonly (string | Buffer)[]

/** A server that decides: the only one, or the owner of slots of a Cluster. */
export interface Primary {
  /** What {@link RedisConnection.nodeOf} calls it. */
  readonly node: string
  /** Sends a command to it once. Rejects if there is no connection. */
  send(command: Command): Promise<unknown>
}

/** What the limiter needs of a client library. No command is ever sent twice. */
export interface RedisConnection {
  /** Whether a command would go out at once. */
  readonly isReady: boolean
  /** Whether keys are spread over several nodes. */
  readonly isCluster: boolean
  /** The name of the server to which a command with this key goes now. */
  nodeOf(key: string): string
  /**
   * Sends a command once; once more only to another node of a Cluster, after a node has refused to run it. Rejects
   * with a `NotSent` if there is no connection. A lost connection may leave the promise pending.
   * @param key the key by which a Cluster finds the node
   */
  send(command: Command, key: string): Promise<unknown>
  /** The server, or each primary of a Cluster. */
  primaries(): readonly Primary[]
  /** A node does not answer: a Cluster looks who owns its slots now. */
  refresh(): void
  /**
   * Calls `listener` after each connection, the first one, too, if it is still to come; and when other nodes own the
   * slots of a Cluster.
   */
  onReady(listener: () => void): void
  /**
   * Why there is no connection by which a command with this key would go: its last error. Undefined while there is one,
   * or if nobody has said why there is none.
   */
  failureOf(key: string): unknown
  /** Calls `listener` after each error of the connection. */
  onFailure(listener: () => void): void
  /**
   * Drops a connection of the limiter's own, and connects again: nothing arrives on it, or its server is not the primary
   * any more. Returns whether it does so.
   */
  renew(): boolean
  /** Closes the connection if it is the limiter's own. */
  close(): Promise<void>
}
