import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What the server of Node.js keeps on a connection. */
interface HttpConnection extends Socket {
  /** The response that is being sent. */
  readonly _httpMessage?: ServerResponse | null
  /** Whether answers are why it does not read. Else it is a body, which its handler will read. */
  readonly _paused?: boolean
}

/** How long a client may go on sending when all its responses have been sent. */
const LINGER_MS = 5_000

/** The number of requests that wait on a connection. */
const waiting = new WeakMap<Socket, number>()
/** The connections whose requests are no longer read. */
const dropping = new WeakSet<Socket>()

/**
 * Sees to it that Node.js notices when a connection closes while one of its requests waits. It stops reading a
 * connection that has many answers ready behind the one that waits, and what is not read has no end. Then this
 * reads on and drops what comes: a client that pipelines so much is answered what it has sent until then, and
 * disconnected.
 * @param connection of HTTP/1
 * @returns to be called when the request no longer waits
 */
export function keepReading(connection: Socket): () => void {
  const others = waiting.get(connection) ?? 0
  if (others === 0) connection.on('pause', checkReading).on('drain', checkReading)
  waiting.set(connection, others + 1)
  checkReading.call(connection)
  return () => {
    const left = waiting.get(connection)! - 1
    waiting.set(connection, left)
    if (left === 0) connection.off('pause', checkReading).off('drain', checkReading)
  }
}

/** A connection whose client does not take what is being sent is noticed to close by that. */
function checkReading(this: HttpConnection): void {
  if (this._paused !== true || this.writableNeedDrain || dropping.has(this)) return
  dropping.add(this)
  const parsers = this.listeners('data') as (() => void)[]
  this.on('data', () => {}) // also takes the connection from the parser that reads it without events
  for (const parser of parsers) this.off('data', parser)
  process.nextTick(() => this.resume()._read(0)) // Node.js is about to pause it
  endWhenAnswered(this)
}

/**
 * Ends a connection when its last response has been sent. A request of which a part was dropped gets none. What
 * the client goes on sending is still read for a time: a connection that closes before takes the responses with it.
 */
function endWhenAnswered(connection: HttpConnection): void {
  const { _httpMessage: current } = connection
  if (current?.req.complete === true) {
    current.once('close', () => endWhenAnswered(connection))
    return
  }
  connection.end()
  const timer = setTimeout(() => connection.destroy(), LINGER_MS)
  connection.once('close', () => clearTimeout(timer))
}
