import { Echo } from './echo.js'

/** The client of a transport: a `RingClient` is one. */
export interface Transport {
  pollsLeft: number
  isReceiving: boolean
  readonly isFull: boolean
  readonly isEmpty: boolean
  readonly unpublished: number
  enqueue(echo: Echo): void
  publish(): boolean
  readReplies(): number
  waitForReply(): Promise<unknown> | undefined
  endWait(): void
}

/** The same as in `engines/pool/pool.ts`. */
const POLLS_AFTER_REPLY = 5
const PUBLISH_AFTER = 16

/**
 * Sends requests by a transport and reads the replies: the loop of `engines/pool/pool.ts` for one worker, and
 * nothing else.
 */
export class TransportClient {
  readonly #transport: Transport
  #isFlushScheduled = false

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** @throws Error if the transport has no room for another request */
  request(first: number): Promise<void> {
    if (this.#transport.isFull) throw new Error('no room for one more request')
    const echo = new Echo(first)
    this.#transport.enqueue(echo)
    if (this.#transport.unpublished >= PUBLISH_AFTER) this.#transport.publish()
    if (!this.#isFlushScheduled) {
      this.#isFlushScheduled = true
      queueMicrotask(() => this.#flush())
    }
    return echo.promise
  }

  #flush(): void {
    this.#isFlushScheduled = false
    if (this.#transport.unpublished > 0) this.#transport.publish()
    this.#scheduleReceive()
  }

  #scheduleReceive(): void {
    const transport = this.#transport
    if (transport.isReceiving || transport.isEmpty) return
    transport.isReceiving = true
    const reply = transport.pollsLeft > 0 ? undefined : transport.waitForReply()
    if (reply === undefined) setImmediate(() => this.#receive())
    else void reply.then(() => this.#receive())
  }

  #receive(): void {
    const transport = this.#transport
    transport.isReceiving = false
    transport.endWait()
    transport.pollsLeft = transport.readReplies() > 0 ? POLLS_AFTER_REPLY : transport.pollsLeft - 1
    this.#scheduleReceive()
  }
}
