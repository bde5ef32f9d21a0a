import type { Command, Primary, RedisConnection } from './connection.js'

// Captured at load, so that fake timers of a test don't stop the commands.
const { nextTick } = process

/**
 * Lets each reply wait until a replica has the write. Commands that are sent together share one `WAIT`, which
 * goes out with them. Redis answers it when a replica has acknowledged all writes that this connection has sent
 * before it, or after `timeoutMs`.
 */
export class ReplicatedConnection implements RedisConnection {
  readonly isCluster = false
  readonly #inner: RedisConnection
  readonly #timeoutMs: string
  #acknowledged: Promise<unknown> | undefined

  constructor(inner: RedisConnection, timeoutMs: number) {
    this.#inner = inner
    this.#timeoutMs = String(Math.ceil(timeoutMs))
  }

  get isReady(): boolean {
    return this.#inner.isReady
  }

  async send(command: Command, key: string): Promise<unknown> {
    // Before the command, because the connection below sends what it has in a tick of its own, which the command
    // begins: this one comes first.
    this.#acknowledged ??= new Promise((resolve) =>
      nextTick(() => {
        this.#acknowledged = undefined
        resolve(this.#inner.send(['WAIT', '1', this.#timeoutMs], key))
      }),
    )
    const acknowledged = this.#acknowledged
    const [reply, replicas] = await Promise.all([this.#inner.send(command, key), acknowledged])
    if (Number(replicas) < 1) throw new Error('no replica has acknowledged the write in time')
    return reply
  }

  nodeOf(key: string): string {
    return this.#inner.nodeOf(key)
  }

  primaries(): readonly Primary[] {
    return this.#inner.primaries()
  }

  refresh(): void {
    this.#inner.refresh()
  }

  onReady(listener: () => void): void {
    this.#inner.onReady(listener)
  }

  failureOf(key: string): unknown {
    return this.#inner.failureOf(key)
  }

  onFailure(listener: () => void): void {
    this.#inner.onFailure(listener)
  }

  renew(): boolean {
    return this.#inner.renew()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}
