import { connect, type Socket } from 'node:net'
import { HOST } from './ports.js'
import type { Behaviour } from './proxy.js'

interface Delayed {
  /** Undefined for the end of the connection. */
  readonly bytes: Buffer | undefined
  readonly dueMs: number
}

export interface Events {
  /** A reply or a request has arrived at which this connection is to be cut. */
  readonly cut: () => void
  /** Bytes were lost, because the proxy is silent. */
  readonly lost: () => void
  readonly closed: () => void
}

/** A client's connection to a proxy, and the proxy's to the server. */
export class Passage {
  readonly #client: Socket
  readonly #server: Socket
  readonly #behaviour: Behaviour
  /** Replies that are delayed or held, in the order of their arrival. */
  readonly #replies: Delayed[] = []
  readonly #events: Events
  /** The last request that waits. */
  #waiting: Promise<unknown> | undefined
  /** Whether bytes were dropped: what follows them would make no sense to either side. */
  hasLost = false
  /** Whether this connection loses all that arrives, whatever the proxy does. */
  isForgotten = false

  constructor(client: Socket, serverPort: number, behaviour: Behaviour, events: Events) {
    this.#client = client
    this.#server = connect(serverPort, HOST)
    this.#behaviour = behaviour
    this.#events = events
    // the client waits for replies, if anyone does
    client.unref().setNoDelay(true)
    this.#server.unref().setNoDelay(true)

    client.on('data', (bytes) => {
      if (behaviour.requestsToCut > 0) {
        behaviour.requestsToCut--
        events.cut()
      } else if (this.#isSilent) this.#lose()
      else this.#pass(bytes)
    })
    this.#server.on('data', (bytes) => {
      if (behaviour.repliesToCut > 0) {
        behaviour.repliesToCut--
        events.cut()
      } else if (this.#isSilent) this.#lose()
      else this.#delay(bytes)
    })
    client.on('end', () => this.#server.end())
    this.#server.on('end', () => {
      if (this.#isSilent) this.#lose()
      else this.#delay(undefined)
    })
    for (const socket of [client, this.#server]) socket.on('error', () => this.close())
    client.on('close', () => this.close())
  }

  /** Writes the replies that are due, and those that are not once they are. */
  forward(): void {
    if (this.#behaviour.isHeld) return
    const nowMs = performance.now()
    while (this.#replies.length > 0 && this.#replies[0]!.dueMs <= nowMs) {
      const { bytes } = this.#replies.shift()!
      if (bytes) this.#client.write(bytes)
      else this.#client.end()
    }
    const [next] = this.#replies
    if (next) setTimeout(() => this.forward(), Math.ceil(next.dueMs - nowMs)).unref()
  }

  close(): void {
    this.#client.destroy()
    this.#server.destroy()
    this.#events.closed()
  }

  get #isSilent(): boolean {
    return this.#behaviour.isSilent || this.isForgotten
  }

  #pass(bytes: Buffer): void {
    const { before } = this.#behaviour
    if (before !== undefined) this.#waiting = Promise.resolve(this.#waiting).then(before)
    if (this.#waiting === undefined) this.#server.write(bytes)
    else this.#waiting = this.#waiting.then(() => this.#server.write(bytes))
  }

  #lose(): void {
    this.hasLost = true
    this.#events.lost()
  }

  #delay(bytes: Buffer | undefined): void {
    this.#replies.push({ bytes, dueMs: performance.now() + this.#behaviour.delayMs })
    this.forward()
  }
}
