import { LastError } from '../remote/last-error.js'
import { CONNECT_TIMEOUT_MS, reconnectMs } from '../remote/reconnect.js'
import { type MemcacheNode, nodeLike, type OwnNode, type ReplyOptions } from './client.js'

/** A connection with commands that wait for replies, and has had none for so long, is given up. */
const SILENT_MS = 5_000

/**
 * A connection to one server. It connects again by itself. A command goes out once, or not at all: it rejects while
 * there is no connection, and when the connection is lost.
 */
export class Connection {
  readonly #like: MemcacheNode
  #node: OwnNode | undefined
  /** Whether the server has answered on this connection. */
  #isReady = false
  #isClosed = false
  #attempts = 0
  #timer: NodeJS.Timeout | undefined
  /** Commands without a reply. */
  #unanswered = 0
  /** Of the last reply, or of the first command that waits for one. */
  #heardMs = 0
  #isCorked = false
  readonly #lastError = new LastError()
  /** Called after each connection. */
  onReady: () => void = () => {}
  /** Called when an attempt to connect has failed, or a connection is lost. */
  onFailure: () => void = () => {}

  /** @param like the node of the client whose server it is */
  constructor(like: MemcacheNode) {
    this.#like = like
    this.#connect()
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** Why there is no connection. Undefined while there is one, or if nobody has said why there is none. */
  get failure(): unknown {
    return this.#isReady ? undefined : this.#lastError.value
  }

  /** Sends a command, without the end of its line. The commands of one turn go out together. */
  async send(command: string, options?: ReplyOptions): Promise<unknown> {
    const node = this.#node
    if (!this.#isReady || node === undefined) throw new Error('no connection to the server')
    const nowMs = performance.now()
    if (this.#unanswered === 0) this.#heardMs = nowMs
    else if (nowMs - this.#heardMs > SILENT_MS) {
      this.#drop(node)
      throw new Error('the server has not answered for 5 seconds')
    }
    this.#cork(node)
    this.#unanswered++
    try {
      return await node.command(command, options)
    } finally {
      if (node === this.#node) {
        this.#unanswered--
        this.#heardMs = performance.now()
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    if (this.#node !== undefined) this.#drop(this.#node)
  }

  /** A new node for each attempt: one that has lost its connection keeps half a reply. */
  #connect(): void {
    const node = nodeLike(this.#like)
    this.#node = node
    this.#timer = setTimeout(() => this.#drop(node), CONNECT_TIMEOUT_MS)
    this.#lastError.begin()
    node.on('error', (error) => {
      if (node === this.#node) this.#lastError.note(error) // 'close' follows
    })
    node.on('close', () => this.#lose(node))
    node
      .connect()
      .then(() => node.command('version')) // a server that stands still accepts connections, too
      .then(
        () => this.#open(node),
        () => this.#drop(node),
      )
  }

  #open(node: OwnNode): void {
    if (node !== this.#node) return
    clearTimeout(this.#timer)
    this.#attempts = 0
    this.#isReady = true
    this.#lastError.clear()
    this.onReady()
  }

  /** Closes a connection. Its commands reject. */
  #drop(node: OwnNode): void {
    void node.disconnect()
    this.#lose(node)
  }

  #lose(node: OwnNode): void {
    if (node !== this.#node) return
    clearTimeout(this.#timer)
    this.#node = undefined
    this.#isReady = false
    this.#unanswered = 0
    if (this.#isClosed) return
    this.#timer = setTimeout(() => this.#connect(), reconnectMs(++this.#attempts))
    this.onFailure()
  }

  #cork({ socket }: OwnNode): void {
    if (this.#isCorked || socket === undefined) return
    this.#isCorked = true
    socket.cork()
    process.nextTick(() => {
      this.#isCorked = false
      socket.uncork()
    })
  }
}
